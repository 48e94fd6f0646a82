"""Reads an inventory, and checks the keys and key files that it names."""

from __future__ import annotations

from pathlib import Path

from atoll.errors import NotPermitted, UsageError
from atoll.schema.fleet import Reach
from atoll.schema.inventory import Inventory, InventoryHost
from atoll.store.document import read_document

_SSH_PORT = 22
_KNOWN_HOSTS = "~/.ssh/known_hosts"


def read_inventory(path: str) -> tuple[Reach, ...]:
    """Raises UsageError if the file is wrong, NotPermitted if a key file may not be used."""
    inventory = read_document(Inventory, Path(path))
    folder = Path(path).resolve().parent
    hosts = tuple(_filled(host, inventory, folder) for host in inventory.hosts)
    for key_file in dict.fromkeys(host.key_file for host in hosts):
        if key_file is not None:
            _check_key_file(Path(key_file), path)
    for known_hosts in dict.fromkeys(host.known_hosts for host in hosts):
        _check_regular(Path(known_hosts), path)
    return hosts


def _filled(host: InventoryHost, common: Inventory, folder: Path) -> Reach:
    def whole(path: str) -> str:
        return str(folder / Path(path).expanduser())

    key_file = host.key_file or common.key_file
    user = host.user or common.user
    atoll = host.atoll or common.atoll or "atoll"
    assert user is not None  # the format checks it
    return Reach(
        name=host.name,
        address=host.address,
        port=host.port or common.port or _SSH_PORT,
        user=user,
        key_file=whole(key_file) if key_file else None,
        known_hosts=whole(host.known_hosts or common.known_hosts or _KNOWN_HOSTS),
        # Quoted there, so the shell does not expand it; sshd starts in the home folder.
        atoll="." + atoll[1:] if atoll.startswith("~/") else atoll,
    )


def _check_regular(path: Path, inventory: str) -> None:
    """A pipe may hang, and is read for one host only. Whether the file exists is for its reader."""
    if path.exists() and not path.is_file():
        raise UsageError(f"{inventory}: {path} is not a regular file; copy it into one")


def _check_key_file(path: Path, inventory: str) -> None:
    _check_regular(path, inventory)
    try:
        mode = path.stat().st_mode
        path.open("rb").close()
    except PermissionError:
        raise NotPermitted(f"{path}: this user may not read the key") from None
    except OSError as fault:
        raise UsageError(
            f"{inventory}: key file {path} cannot be read ({fault.strerror})"
        ) from None
    if mode & 0o077:
        raise NotPermitted(f"{path}: others may read this key; run: chmod 600 {path}")
