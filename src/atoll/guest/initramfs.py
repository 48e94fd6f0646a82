"""The guest's first root file system: a newc cpio archive written here, not by a tool of the host.

Format: Documentation/driver-api/early-userspace/buffer-format.rst. The modules come from a
Debian kernel package, which has no modules.dep (depmod runs at installation): their order comes
from the `depends=` entry that each module carries.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable, Iterable
from pathlib import Path

# What the root over virtio-9p, its overlay and network cards need; the rest of virtio is in the
# kernel.
MODULES = ("9p", "9pnet_virtio", "overlay", "virtio_net")


def archive(files: Iterable[tuple[str, int, bytes]]) -> bytes:
    """A newc archive of (name, mode with its type, content), with the folders they lie in."""
    folders: dict[str, None] = {}
    entries = []
    for name, mode, content in files:
        parts = name.split("/")[:-1]
        folders |= {"/".join(parts[: n + 1]): None for n in range(len(parts))}
        entries.append((name, mode, content))
    whole = [*((name, 0o040755, b"") for name in folders), *entries, ("TRAILER!!!", 0, b"")]
    return b"".join(_entry(number, *entry) for number, entry in enumerate(whole, 1))


def _entry(inode: int, name: str, mode: int, content: bytes) -> bytes:
    named = name.encode() + b"\0"
    fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(named), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + named
    return _padded(head) + _padded(content)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def in_order(names: Iterable[str], depends: Callable[[str], Iterable[str]]) -> list[str]:
    """`names` and what they depend on, each after what it needs."""
    found: dict[str, None] = {}

    def visit(name: str) -> None:
        if name not in found:
            for other in depends(name):
                visit(other)
            found[name] = None

    for name in names:
        visit(name)
    return list(found)


def depends_of(module: bytes) -> list[str]:
    """The modules that a module's .modinfo section names."""
    match = re.search(rb"\0depends=([\w,-]*)\0", module)
    return (
        [name.replace("-", "_") for name in match[1].decode().split(",") if name] if match else []
    )


def read_modules(folder: Path) -> dict[str, bytes]:
    """MODULES and what they need, decompressed, in the order to load them. Raises KeyError."""
    paths = {path.name.partition(".")[0].replace("-", "_"): path for path in folder.rglob("*.ko*")}
    loaded: dict[str, bytes] = {}

    def depends(name: str) -> list[str]:
        data = paths[name].read_bytes()
        loaded[name] = lzma.decompress(data) if paths[name].suffix == ".xz" else data
        return depends_of(loaded[name])

    return {name: loaded[name] for name in in_order(MODULES, depends)}


def build(busybox: bytes, init: bytes, modules: dict[str, bytes]) -> bytes:
    return archive(
        [
            ("bin/busybox", 0o100755, busybox),
            ("init", 0o100755, init),
            ("modules/order", 0o100644, "".join(f"{name}\n" for name in modules).encode()),
            *((f"modules/{name}.ko", 0o100644, data) for name, data in modules.items()),
        ]
    )
