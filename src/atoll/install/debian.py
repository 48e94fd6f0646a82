"""Debian packages, unpacked into a folder without root and without touching the host.

The archive is the one that this machine itself is set up for: its own sources, its own keys,
apt's own verification of signatures. Everything apt writes lies in a private state folder in
Atoll's cache, because Debian's mirrors drop old package versions: no pinned hash could hold,
a signed index does. Packages are unpacked (`dpkg-deb -x`), not installed: no script of theirs
runs. Absolute links that point into the unpacked tree are made relative, so that it can be
used where it lies, and setuid bits are dropped.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
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
from atoll.install import client, debian_sources
from atoll.install.client import Run
from atoll.install.debian_sources import Source
from atoll.install.parts import MANIFEST, tree_bytes
from atoll.install.progress import Tell
from atoll.store.paths import cache_dir

# apt's package index in our cache, about.
INDEX_BYTES = 105_000_000
# Where no more is free, apt 2.6 waits for a client of its own that has given up.
_LEAST_FREE_BYTES = 1 << 20
# Options of the host's apt that would let an unsigned archive in; they are not taken over.
_UNSAFE = re.compile(r"insecure|weakrepositories|verify-(peer|host)|unauthenticated", re.IGNORECASE)
# apt names the strongest digest that its index has: Debian's SHA-256, another archive's SHA-512.
_URI = re.compile(r"^'[^']*' (\S+) (\d+) (SHA256|SHA512):(\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Wish:
    packages: tuple[str, ...]
    suite: str = ""  # 'bookworm-backports'; '': this release's own
    depending: str = ""  # also what they need and this machine lacks, if named like this pattern


def unpack_packages(
    wish: Wish, tree: Path, keep: Path, *, tell: Tell, run: Run = client.run
) -> None:
    """Fetch into `keep`, which may hold some of them from before, check, unpack into `tree`.

    Raises DownloadFailed, OSError.
    """
    codename = debian_sources.release_codename()
    sources = debian_sources.of_the_system(debian_sources.machine_sources(), codename)
    if not sources:
        raise DownloadFailed(
            f"/etc/apt: no source of {codename}; add the distribution's own archive"
        )
    if wish.suite:
        sources = debian_sources.with_suite(sources, wish.suite, codename)
    wanted = list(wish.packages)
    with _private_apt(cache_dir("apt"), sources, run) as config:
        apt = functools.partial(_said, run, config=config)
        also = f" and {wish.suite}" if wish.suite else ""
        tell(f"reading the package index of {codename}{also}")
        apt(["apt-get", "update", "--error-on=any"])
        target = ["-t", wish.suite] if wish.suite else []
        if wish.depending:
            wanted = depends(wanted, wish.depending, target, apt)
        download = ["apt-get", *target, "download", *wanted]
        debs = _Debs(keep, apt([*download, "--print-uris"], cwd=keep))
        if len(debs.paths) < len(wanted):
            raise DownloadFailed(f"apt-get download: names no checksum of {' '.join(wanted)}")
        debs.drop_others()
        doing = f"fetching {' '.join(wanted)}"
        tell(doing, 0, debs.total_bytes)
        apt(download, cwd=keep, tick=lambda: tell(doing, tree_bytes(keep), debs.total_bytes))
    debs.check()
    versions = {}
    for deb in debs.paths:
        tell(f"unpacking {deb.name}")
        _said(run, ["dpkg-deb", "-x", str(deb), str(tree)])
        told = _said(run, ["dpkg-deb", "-W", "--showformat=${Package} ${Version}", str(deb)])
        name, version = told.split()
        versions[name] = version
    mend(tree)
    manifest = {
        "asked": sorted(wish.packages),
        "suite": wish.suite,
        "depending": wish.depending,
        "versions": versions,
    }
    (tree / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


class _Debs:
    """The files that apt will fetch into a folder, as its signed index has them."""

    def __init__(self, folder: Path, uris: str) -> None:
        told = _URI.findall(uris)
        self._digests: dict[Path, tuple[str, str]] = {
            folder / name: (kind, digest) for name, _, kind, digest in told
        }
        self._folder = folder
        self.paths = sorted(self._digests)
        self.total_bytes = sum(int(size) for _, size, _, _ in told)

    def drop_others(self) -> None:
        """Older versions, and what is not whole: apt takes a file of the right size for the right
        one (seen in 2.6)."""
        for path in self._folder.glob("*.deb"):
            if not self._is_whole(path):
                path.unlink()

    def check(self) -> None:
        for path in self.paths:
            if not self._is_whole(path):
                path.unlink(missing_ok=True)
                raise DownloadFailed(
                    f"{path.name}: is not what the archive's index says; it was removed, try again"
                )

    def _is_whole(self, path: Path) -> bool:
        if path not in self._digests or not path.is_file():
            return False
        kind, digest = self._digests[path]
        with path.open("rb") as file:
            return hashlib.file_digest(file, kind.lower()).hexdigest() == digest


@contextlib.contextmanager
def _private_apt(folder: Path, sources: Sequence[Source], run: Run) -> Iterator[Path]:
    """Set up the private apt and hold it alone; yields its configuration file."""
    for part in ("state/lists/partial", "cache/archives/partial", "log", "sources"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "status").touch()
        text = "\n".join(source.stanza() for source in sources)
        (folder / "sources/machine.sources").write_text(text)
        config = folder / "apt.conf"
        config.write_text(apt_config(folder, _said(run, ["apt-config", "dump", "Acquire"])))
        yield config


def apt_config(folder: Path, host: str) -> str:
    """The configuration of an apt that lives in `folder`. `host` is the host's `Acquire` part
    (proxies, certificates); its hooks are not taken over, they would run on the host."""
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
    if os.geteuid() == 0:
        # As root apt works as the user _apt, who cannot write into a private folder.
        own["APT::Sandbox::User"] = "root"
    lines = [line for line in kept if not line.startswith("Acquire::Languages")]
    return "\n".join([*lines, *(f'{name} "{value}";' for name, value in own.items())]) + "\n"


def _said(
    run: Run,
    argv: Sequence[str],
    *,
    config: Path | None = None,
    cwd: Path | None = None,
    tick: Callable[[], None] = lambda: None,
) -> str:
    """The command's stdout. Raises DownloadFailed with the first error that it told."""
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
        said = [line.strip() for line in done.stderr.splitlines() if line.startswith("E:")]
        first = (said or done.stderr.split("\n")[-2:-1] or ["no message"])[0]
        if "Unable to locate package" in first:
            first += "; this release has it not: install what it has yourself, and that is used"
        raise DownloadFailed(f"{' '.join(argv[:2])}: {first}")
    return done.stdout


def depends(
    packages: Sequence[str], pattern: str, target: Sequence[str], apt: Callable[[list[str]], str]
) -> list[str]:
    """`packages` and what they need that is not installed here and is named like `pattern`."""
    status = "Dir::State::status=/var/lib/dpkg/status"
    argv = ["apt-get", "-s", "-o", status, "--no-install-recommends", *target, "install"]
    simulated = apt([*argv, *packages])
    lacking = re.findall(r"^Inst (\S+)", simulated, re.MULTILINE)
    return sorted({*packages, *fnmatch.filter(lacking, pattern)})


def mend(tree: Path) -> None:
    """Make absolute links relative where their target lies in the tree; drop setuid and setgid."""
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
