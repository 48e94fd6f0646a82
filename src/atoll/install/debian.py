"""Debian packages, unpacked into a folder without root and without touching the machine.

The archive is the machine's own: its sources, its keys, and apt's verification of signatures.
apt writes into a private state folder in Atoll's cache. Debian's mirrors drop old versions of
packages, so no hash can be pinned; the signed index is checked instead. Packages are unpacked
(`dpkg-deb -x`), not installed, so none of their scripts run. Absolute links that point into the
unpacked tree are made relative, so that the tree works wherever it is, and setuid bits are
dropped.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import functools
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from atoll.errors import DownloadFailed
from atoll.host.caller import user_id
from atoll.install import debian_sources
from atoll.install.client import Run
from atoll.install.debian_sources import Source
from atoll.install.parts import MANIFEST, tree_bytes
from atoll.install.progress import Tell
from atoll.store.locks import locked
from atoll.store.once import make_once
from atoll.store.paths import cache_dir

# apt's package index in our cache, about.
INDEX_BYTES = 105_000_000
# With less room, apt 2.6 waits forever for a client of its own that has given up.
_LEAST_FREE_BYTES = 1 << 20
# Options of the machine's apt that would admit an unsigned archive; they are not copied.
_UNSAFE = re.compile(r"insecure|weakrepositories|verify-(peer|host)|unauthenticated", re.IGNORECASE)
# apt reports the strongest digest of its index: Debian's SHA-256, another archive's SHA-512.
_URI = re.compile(r"^'[^']*' (\S+) (\d+) (SHA256|SHA512):(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Order:
    """Packages for a folder of their own; `unpack_packages` explains the fields."""

    packages: tuple[str, ...]
    suite: str = ""
    depending: str = ""


def holds(folder: Path, order: Order) -> bool:
    """Whether an earlier `fetch` put exactly these packages there."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return False
    return bool(
        manifest.get("asked") == sorted(order.packages)
        and manifest.get("suite") == order.suite
        # Folders from before this was written down are as they were asked for.
        and manifest.get("depending", order.depending) == order.depending
    )


def fetch(order: Order, into: Path, *, tell: Tell, run: Run) -> None:
    """Make the folder `into` of the packages, or replace it. Raises AtollError."""

    def make(tree: Path) -> None:
        tree.mkdir()
        debs = tree.with_name("debs")
        debs.mkdir()
        unpack_packages(
            order.packages,
            tree,
            debs,
            suite=order.suite,
            depending=order.depending,
            tell=tell,
            run=run,
        )

    into.parent.mkdir(parents=True, exist_ok=True)
    make_once(
        into,
        make,
        what=" ".join(order.packages),
        is_whole=lambda folder: holds(folder, order),
        waiting=lambda: tell(f"waiting for another process to fetch {' '.join(order.packages)}"),
    )


def unpack_packages(
    packages: Sequence[str],
    tree: Path,
    keep: Path,
    *,
    suite: str = "",
    depending: str = "",
    tell: Tell,
    run: Run,
) -> None:
    """Fetch packages into `keep`, check them, and unpack them into `tree`.

    `keep` may hold some of them already. `suite`: prefer this one ('bookworm-backports') to this
    release's own. `depending`: fetch their missing dependencies too, as far as their names match
    this pattern. Raises DownloadFailed, OSError.
    """
    wanted = list(packages)
    target = ("-t", suite) if suite else ()
    with _private_apt(cache_dir("apt"), debian_sources.of_this_release(suite), run) as config:
        apt = functools.partial(_output, run, config=config)
        tell("reading the package index")
        apt(["apt-get", "update", "--error-on=any"])
        if depending:
            wanted = depends(wanted, depending, target, apt)
        download = ["apt-get", *target, "download", *wanted]
        debs = _Debs(keep, apt([*download, "--print-uris"], cwd=keep))
        if len(debs.paths) < len(wanted):
            raise DownloadFailed(f"apt-get download: reports no checksum of {' '.join(wanted)}")
        debs.drop_others()
        doing = f"fetching {' '.join(wanted)}"
        tell(doing, 0, debs.total_bytes)
        apt(download, cwd=keep, tick=lambda: tell(doing, tree_bytes(keep), debs.total_bytes))
    debs.check()
    versions = {}
    for deb in debs.paths:
        tell(f"unpacking {deb.name}")
        _output(run, ["dpkg-deb", "-x", str(deb), str(tree)])
        field = ["dpkg-deb", "-W", "--showformat=${Package} ${Version}", str(deb)]
        name, version = _output(run, field).split()
        versions[name] = version
    mend(tree)
    asked = {"asked": sorted(packages), "suite": suite, "depending": depending}
    manifest = asked | {"versions": versions}
    (tree / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


class _Debs:
    """The files that apt will fetch into a folder, as listed in its signed index."""

    def __init__(self, folder: Path, uris: str) -> None:
        listed = _URI.findall(uris)
        self._digests: dict[Path, tuple[str, str]] = {
            folder / name: (kind, digest) for name, _, kind, digest in listed
        }
        self._folder = folder
        self.paths = sorted(self._digests)
        self.total_bytes = sum(int(size) for _, size, _, _ in listed)

    def drop_others(self) -> None:
        """Remove older versions and damaged files: apt takes any file of the right size for the
        right one (seen in 2.6)."""
        for path in self._folder.glob("*.deb"):
            if not self._is_whole(path):
                path.unlink()

    def check(self) -> None:
        for path in self.paths:
            if not self._is_whole(path):
                path.unlink(missing_ok=True)
                raise DownloadFailed(
                    f"{path.name}: differs from the archive's index; it was removed, try again"
                )

    def _is_whole(self, path: Path) -> bool:
        if path not in self._digests or not path.is_file():
            return False
        kind, digest = self._digests[path]
        with path.open("rb") as file:
            return hashlib.file_digest(file, kind.lower()).hexdigest() == digest


@contextlib.contextmanager
def _private_apt(folder: Path, sources: Sequence[Source], run: Run) -> Iterator[Path]:
    """Set up the private apt, for this process alone. Yields its configuration file."""
    for part in ("state/lists/partial", "cache/archives/partial", "log", "sources"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        (folder / "status").touch()
        text = "\n".join(source.stanza() for source in sources)
        (folder / "sources/machine.sources").write_text(text)
        config = folder / "apt.conf"
        config.write_text(apt_config(folder, _output(run, ["apt-config", "dump", "Acquire"])))
        yield config


def apt_config(folder: Path, host: str) -> str:
    """The configuration of an apt that keeps its state in `folder`.

    `host` is the `Acquire` part of the machine's own configuration (proxies, certificates). Its
    hooks are left out: they would change the machine."""
    kept = [line for line in host.splitlines() if not _UNSAFE.search(line.partition('"')[0])]
    own = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Log": folder / "log",
        "Dir::Etc::main": "/dev/null",
        "Dir::Etc::parts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": folder / "sources",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        "APT::Get::AllowUnauthenticated": "false",
    }
    if user_id() == 0:
        # As root apt works as the user _apt, who cannot write into a private folder.
        own["APT::Sandbox::User"] = "root"
    lines = [line for line in kept if not line.startswith("Acquire::Languages")]
    return "\n".join([*lines, *(f'{name} "{value}";' for name, value in own.items())]) + "\n"


def _output(
    run: Run,
    argv: Sequence[str],
    *,
    config: Path | None = None,
    cwd: Path | None = None,
    tick: Callable[[], None] = lambda: None,
) -> str:
    """The command's stdout. Raises DownloadFailed with the first error that it reported."""
    environment = {"LC_ALL": "C.UTF-8"}
    environment |= {} if config is None else {"APT_CONFIG": str(config)}

    def tick_with_room() -> None:
        for folder in filter(None, (cwd, config and config.parent)):
            if shutil.disk_usage(folder).free < _LEAST_FREE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        tick()

    try:
        done = run(argv, cwd=cwd, env=environment, tick=tick_with_room)
    except FileNotFoundError:
        raise DownloadFailed(
            f"{argv[0]}: not on this machine; this needs Debian or Ubuntu"
        ) from None
    if done.returncode != 0:
        errors = [line.strip() for line in done.stderr.splitlines() if line.startswith("E:")]
        first = (errors or done.stderr.split("\n")[-2:-1] or ["no message"])[0]
        if "Unable to locate package" in first:
            first += (
                "; this release lacks that version; install the one it has and Atoll will use it"
            )
        raise DownloadFailed(f"{' '.join(argv[:2])}: {first}")
    return done.stdout


def depends(
    packages: Sequence[str], pattern: str, target: Sequence[str], apt: Callable[[list[str]], str]
) -> list[str]:
    """`packages`, and their dependencies that are not installed and match `pattern`."""
    status = "Dir::State::status=/var/lib/dpkg/status"
    argv = ["apt-get", "-s", "-o", status, "--no-install-recommends", *target, "install"]
    simulated = apt([*argv, *packages])
    lacking = re.findall(r"^Inst (\S+)", simulated, re.MULTILINE)
    return sorted({*packages, *fnmatch.filter(lacking, pattern)})


def mend(tree: Path) -> None:
    """Make absolute links relative if their target is in the tree; drop setuid and setgid."""
    for folder, names, files in os.walk(tree):
        for path in (Path(folder, name) for name in (*names, *files)):
            if path.is_symlink():
                target = os.readlink(path)
                inside = tree / target.lstrip("/")
                if os.path.isabs(target) and os.path.lexists(inside):
                    path.unlink()
                    path.symlink_to(os.path.relpath(inside, path.parent))
            elif (mode := path.lstat().st_mode) & (stat.S_ISUID | stat.S_ISGID):
                path.chmod(stat.S_IMODE(mode) & 0o1777)
