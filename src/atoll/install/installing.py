"""Fetching, checking, unpacking and removing parts: each is there whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from atoll.errors import DownloadFailed, NotPermitted, UsageError
from atoll.install import client, debian, maven, wheel
from atoll.install.catalog import Artifact, Catalog, Packages, Part, Wheel, parts_of
from atoll.install.client import Run
from atoll.install.listing import damage, write_list
from atoll.install.parts import engines_dir, installed, kept_by, tree_bytes
from atoll.install.placing import (
    alone,
    is_being_made,
    is_full,
    no_room,
    put,
    require_room,
    staging,
    take_away,
)
from atoll.install.progress import Tell
from atoll.install.unpack import unpack
from atoll.store.files import sha256
from atoll.store.paths import cache_dir

_FETCHED = ".fetched"


def install(parts: Sequence[Part], *, tell: Tell, run: Run = client.run) -> None:
    """Put those in place that are not there or are damaged. Raises DownloadFailed, NotPermitted.

    What is whole stays whatever happens: parts in place, and files that were fetched.
    """
    for part in parts:
        if isinstance(part.source, Wheel):
            part.source.hash_here()  # before gigabytes of another part are fetched in vain
    folder = engines_dir()
    with alone(folder, lambda: tell("waiting for another 'atoll engine' to end")):
        for part in parts:
            if not is_whole(part, tell):
                _install(part, folder, tell, run)


def is_whole(part: Part, tell: Tell) -> bool:
    """Whether the part is there as it was put there; every file of it is read."""
    if not (folder := installed(part.name)):
        return False
    tell(f"checking {part.name}")
    return not damage(Path(folder), contents=True)


def _install(part: Part, folder: Path, tell: Tell, run: Run) -> None:
    keep = folder / _FETCHED / part.name
    needed_bytes = part.unpacked_bytes + part.fetched_bytes
    try:
        keep.mkdir(parents=True, exist_ok=True)
        have_bytes = part.fetched_bytes if _lies_elsewhere(part, keep) else tree_bytes(keep)
        have_bytes = min(have_bytes, part.fetched_bytes)
        if isinstance(part.source, Packages):
            needed_bytes += debian.INDEX_BYTES
            have_bytes += min(tree_bytes(cache_dir("apt")), debian.INDEX_BYTES)
        require_room(folder, needed_bytes - have_bytes, part.name)
        with staging(folder) as made:
            tree = _made(part, made / "tree", keep, tell, run)
            tell(f"listing the files of {part.name}")
            write_list(tree)
            put(tree, folder / part.name, old=made / "damaged")
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


def remove(
    engines: Sequence[str], catalog: Catalog, *, in_use: Mapping[str, str], tell: Tell
) -> list[str]:
    """Remove the parts of these engines that no other installed engine needs, parts of theirs from
    another version of Atoll, and what they keep in the cache; tell what has gone.

    `in_use`: engine -> a deployment of it that is up. Raises UsageError for such a one, and for one
    whose data is being made; NotPermitted where something cannot be removed.
    """
    parts = parts_of(engines, catalog)
    for engine in engines:
        if engine in in_use:
            raise UsageError(
                f"{engine}: the deployment {in_use[engine]!r} uses it; end it first: "
                f"atoll down {in_use[engine]}"
            )
        _refuse_busy(engine)
    folder = engines_dir()
    gone = []
    with alone(folder, lambda: tell("waiting for another 'atoll engine' to end")):
        others = [known for name, known in catalog.items() if name not in engines]
        needed = {
            part.name
            for known in others
            if all(installed(part.name) for part in known)
            for part in known
        }
        ours = [part.name for part in parts if part.name not in needed]
        for name in [*ours, *_outdated(folder, parts, catalog)]:
            shutil.rmtree(folder / _FETCHED / name, ignore_errors=True)
            if installed(name):
                tell(f"removing {name}")
                take_away(folder / name)
                gone.append(name)
        for engine in engines:
            if (kept := kept_by(engine)).is_dir():
                _refuse_busy(engine)  # it may have begun while this waited
                tell(f"removing what {engine} keeps")
                take_away(kept, by_way_of=folder)
                gone.append(f"what was loaded into {engine}")
    return gone


def _refuse_busy(engine: str) -> None:
    if is_being_made(kept := kept_by(engine)):
        raise UsageError(
            f"{engine}: another process makes its data in {kept} (tables, or an empty database); "
            "wait for its end"
        )


def _outdated(folder: Path, parts: Sequence[Part], catalog: Catalog) -> list[str]:
    """Parts that another version of Atoll fetched: 'server-470' where ours is 'server-476'."""
    kinds = {part.name.rpartition("-")[0] for part in parts}
    names = {path.name for place in (folder, folder / _FETCHED) for path in place.glob("[!.]*")}
    ours = {part.name for known in catalog.values() for part in known}
    return sorted(name for name in names - ours if name.rpartition("-")[0] in kinds)
