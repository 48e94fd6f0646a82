"""Fetching, checking, unpacking and removing parts: each is there whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from atoll.errors import DownloadFailed, NotPermitted, UsageError
from atoll.install import client, debian, maven, wheel
from atoll.install.catalog import ENGINES, PARTS, Artifact, Packages, Part, Wheel, parts_of
from atoll.install.client import Run
from atoll.install.parts import engines_dir, installed, tree_bytes
from atoll.install.placing import alone, is_full, no_room, put, require_room, staging, take_away
from atoll.install.progress import Tell
from atoll.install.unpack import unpack
from atoll.store.files import sha256

_FETCHED = ".fetched"


def install(parts: Sequence[Part], *, tell: Tell, run: Run = client.run) -> None:
    """Put those in place that are not there. Raises DownloadFailed, NotPermitted.

    What is whole stays whatever happens: parts in place, and files that were fetched.
    """
    for part in parts:
        if isinstance(part.source, Wheel):
            part.source.hash_here()  # before gigabytes of another part are fetched in vain
    folder = engines_dir()
    with alone(folder, lambda: tell("waiting for another 'atoll engine' to end")):
        for part in parts:
            if not installed(part.name):
                _install(part, folder, tell, run)


def _install(part: Part, folder: Path, tell: Tell, run: Run) -> None:
    keep = folder / _FETCHED / part.name
    needed_bytes = part.unpacked_bytes + part.fetched_bytes
    try:
        keep.mkdir(parents=True, exist_ok=True)
        have_bytes = part.fetched_bytes if _lies_elsewhere(part, keep) else tree_bytes(keep)
        have_bytes = min(have_bytes, part.fetched_bytes)
        require_room(folder, needed_bytes - have_bytes, part.name)
        with staging(folder) as made:
            put(_made(part, made / "tree", keep, tell, run), folder / part.name)
        shutil.rmtree(keep)
    except OSError as fault:
        if is_full(fault):
            raise no_room(folder, needed_bytes, part.name) from None
        raise NotPermitted(
            f"{part.name}: {fault.filename or folder}: {fault.strerror or fault}"
        ) from None


def _places(source: Artifact | Wheel, keep: Path) -> tuple[Path, ...]:
    """Where its file may lie already."""
    if isinstance(source, Artifact):
        return maven.places(source, keep)
    return wheel.places(source, keep)


def _lies_elsewhere(part: Part, keep: Path) -> bool:
    """Whether nothing is likely to be fetched; its checksum is looked at later."""
    return not isinstance(part.source, Packages) and any(
        path.is_file() and path.stat().st_size == part.fetched_bytes
        for path in _places(part.source, keep)
        if not path.is_relative_to(keep)
    )


def _made(part: Part, tree: Path, keep: Path, tell: Tell, run: Run) -> Path:
    """The folder that is the part, somewhere in `tree`."""
    tree.mkdir()
    source = part.source
    if isinstance(source, Packages):
        wish = debian.Wish(source.names, depending="*" if source.with_depends else "")
        debian.unpack_packages(wish, tree, keep, tell=tell, run=run)
        return tree
    archive = _fetched(part, source, keep, tell, run)
    doing = f"unpacking {part.name}"
    unpack(
        archive,
        tree,
        most_bytes=part.unpacked_bytes,
        tell=lambda done: tell(doing, done, part.unpacked_bytes),
    )
    if not (tree / source.tree).is_dir():
        raise DownloadFailed(f"{archive}: holds no folder {source.tree}")
    return tree / source.tree


def _fetched(part: Part, source: Artifact | Wheel, keep: Path, tell: Tell, run: Run) -> Path:
    """A file with the pinned checksum: one that is there already, else a fetched one."""
    pinned = source.sha256 if isinstance(source, Artifact) else source.hash_here()
    for path in _places(source, keep):
        if path.is_file():
            tell(f"checking {path.name}")
            if sha256(path) == pinned:
                return path
            if path.is_relative_to(keep):
                path.unlink()
    doing = f"fetching {part.name}"
    tell(doing, 0, part.fetched_bytes)

    def tick() -> None:
        # pip and mvn fetch some small files beside it.
        tell(doing, min(tree_bytes(keep), part.fetched_bytes), part.fetched_bytes)

    if isinstance(source, Artifact):
        path = maven.fetch(source, keep, run=run, tick=tick)
    else:
        path = wheel.fetch(source, keep, run=run, tick=tick)
    tell(f"checking {path.name}")
    found = sha256(path)
    if found != pinned:
        size = path.stat().st_size
        path.unlink()
        raise DownloadFailed(
            f"{path.name}: {size} bytes with the SHA-256 {found[:16]}... came, not the pinned "
            f"{pinned[:16]}...; it was removed; try again, and if that does not help, ask whoever "
            "runs the repository that it comes from"
        )
    return path


def remove(engines: Sequence[str], *, in_use: Mapping[str, str], tell: Tell) -> list[str]:
    """Remove the parts of these engines that no other installed engine needs, and give their names.

    `in_use`: engine -> a deployment of it that is up. Raises UsageError for such a one,
    NotPermitted where a part cannot be removed.
    """
    parts = parts_of(engines)
    for engine in engines:
        if engine in in_use:
            raise UsageError(
                f"{engine}: the deployment {in_use[engine]!r} uses it; end it first: "
                f"atoll down {in_use[engine]}"
            )
    folder = engines_dir()
    gone = []
    with alone(folder, lambda: tell("waiting for another 'atoll engine' to end")):
        others = (name for name in ENGINES if name not in engines and _is_whole(name))
        needed = {part for name in others for part in ENGINES[name]}
        for part in parts:
            if part.name not in needed:
                shutil.rmtree(folder / _FETCHED / part.name, ignore_errors=True)
                if installed(part.name):
                    tell(f"removing {part.name}")
                    take_away(folder / part.name)
                    gone.append(part.name)
    return gone


def _is_whole(engine: str) -> bool:
    return all(installed(PARTS[name].name) for name in ENGINES[engine])
