"""Fetching, checking, unpacking and removing parts: each is there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from atoll.errors import DownloadFailed, NotPermitted, UsageError
from atoll.host.unpack import unpack
from atoll.install import debian, maven, pip
from atoll.install.catalog import Artifact, Catalog, Packages, Part, Sdist, Wheel, parts_of
from atoll.install.client import Run
from atoll.install.listing import damage, write_list
from atoll.install.parts import engines_dir, installed, kept_by, tree_bytes
from atoll.install.progress import Tell
from atoll.store.files import sha256
from atoll.store.locks import locked
from atoll.store.once import (
    is_being_made,
    put,
    remove_folder,
    remove_leftovers,
    require_room,
    staging,
    storing_failed,
)
from atoll.store.paths import cache_dir

_FETCHED = ".fetched"


def install(parts: Sequence[Part], *, tell: Tell, run: Run) -> None:
    """Install the parts that are missing or damaged. Raises DownloadFailed, NotPermitted.

    Whatever happens, parts that are whole and files that were fetched stay.
    """
    for part in parts:
        if isinstance(part.source, Wheel):
            part.source.hash_here()  # before gigabytes of another part are fetched for nothing
    folder = engines_dir()
    with _alone(folder, tell):
        for part in parts:
            if not is_whole(part, tell):
                _install(part, folder, tell, run)


def is_whole(part: Part, tell: Tell) -> bool:
    """Whether the part is installed and undamaged; every file of it is read."""
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
        with staging(folder / part.name) as stage:
            tree = _made(part, stage / "tree", keep, tell, run)
            tell(f"listing the files of {part.name}")
            write_list(tree)
            put(tree, folder / part.name)
        shutil.rmtree(keep)
    except OSError as fault:
        raise storing_failed(fault, folder, needed_bytes, part.name) from None


def _places(source: Artifact | Wheel | Sdist, keep: Path) -> tuple[Path, ...]:
    """Where the file may be already."""
    if isinstance(source, Artifact):
        return maven.places(source, keep)
    return pip.places(source, keep)


def _lies_elsewhere(part: Part, keep: Path) -> bool:
    """Whether a file of the right size exists elsewhere; its checksum is checked later."""
    return not isinstance(part.source, Packages) and any(
        path.is_file() and path.stat().st_size == part.fetched_bytes
        for path in _places(part.source, keep)
        if not path.is_relative_to(keep)
    )


def _made(part: Part, tree: Path, keep: Path, tell: Tell, run: Run) -> Path:
    """Make the part in `tree`, and return the folder that is the part."""
    tree.mkdir()
    source = part.source
    if isinstance(source, Packages):
        debian.unpack_packages(
            source.names,
            tree,
            keep,
            depending="*" if source.with_depends else "",
            tell=tell,
            run=run,
        )
        return tree
    archive = _fetched(part, source, keep, tell, run)
    doing = f"unpacking {part.name}"
    unpack(
        archive,
        tree,
        error=DownloadFailed,
        most_bytes=part.unpacked_bytes,
        tell=lambda done: tell(doing, done, part.unpacked_bytes),
    )
    if not (tree / source.tree).is_dir():
        raise DownloadFailed(f"{archive}: contains no folder {source.tree}")
    return tree / source.tree


def _fetched(
    part: Part, source: Artifact | Wheel | Sdist, keep: Path, tell: Tell, run: Run
) -> Path:
    """A file with the pinned checksum: an existing one, else a fetched one."""
    pinned = source.hash_here() if isinstance(source, Wheel) else source.sha256
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
        # pip and mvn fetch some small files in addition.
        tell(doing, min(tree_bytes(keep), part.fetched_bytes), part.fetched_bytes)

    if isinstance(source, Artifact):
        path = maven.fetch(source, keep, run=run, tick=tick)
    else:
        path = pip.fetch(source, pinned, keep, run=run, tick=tick)
    tell(f"checking {path.name}")
    found = sha256(path)
    if found != pinned:
        size = path.stat().st_size
        path.unlink()
        raise DownloadFailed(
            f"{path.name}: got {size} bytes with the SHA-256 {found[:16]}... instead of the pinned "
            f"{pinned[:16]}..., and removed them; try again, and if that does not help, ask the "
            "operator of the repository"
        )
    return path


def remove(
    engines: Sequence[str], catalog: Catalog, *, in_use: Mapping[str, str], tell: Tell
) -> list[str]:
    """Remove the parts of these engines that no other installed engine needs, their parts of other
    versions of Atoll, and their data in the cache. Returns what was removed.

    `in_use`: engine -> a deployment of it that is up. Raises UsageError for an engine that is in
    use or whose data is being made, NotPermitted if something cannot be removed.
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
    with _alone(folder, tell):
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
                _remove(folder / name)
                gone.append(name)
        for engine in engines:
            if (kept := kept_by(engine)).is_dir():
                _refuse_busy(engine)  # it may have begun in the meantime
                tell(f"removing what {engine} keeps")
                _remove(kept, stage=folder)
                gone.append(f"what was loaded into {engine}")
    return gone


@contextlib.contextmanager
def _alone(folder: Path, tell: Tell) -> Iterator[None]:
    """Hold the lock of all parts, and remove what killed processes left half made."""
    waiting = locked(folder / ".lock", lambda: tell("waiting for another 'atoll engine' to end"))
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(waiting)
        except OSError as fault:
            raise NotPermitted(f"{folder}: cannot be written ({fault.strerror})") from None
        remove_leftovers(folder)
        yield


def _remove(path: Path, *, stage: Path | None = None) -> None:
    """As `atoll.store.once.remove_folder`. Raises NotPermitted."""
    if path.is_symlink():
        raise NotPermitted(
            f"{path}: is a link to {os.readlink(path)}, which Atoll did not make; remove its "
            "target, then the link"
        )
    try:
        remove_folder(path, stage=stage)
    except OSError as fault:
        raise NotPermitted(f"{path}: cannot be removed ({fault.strerror or fault})") from None


def _refuse_busy(engine: str) -> None:
    kept = kept_by(engine)
    try:
        busy = is_being_made(kept)
    except OSError as fault:
        raise NotPermitted(f"{fault.filename}: cannot be read ({fault.strerror})") from None
    if busy:
        raise UsageError(
            f"{engine}: another process makes its data in {kept} (tables, or an empty database); "
            "wait until it ends"
        )


def _outdated(folder: Path, parts: Sequence[Part], catalog: Catalog) -> list[str]:
    """Parts that another version of Atoll fetched: 'server-470' where this one has 476."""
    kinds = {part.name.rpartition("-")[0] for part in parts}
    names = {path.name for place in (folder, folder / _FETCHED) for path in place.glob("[!.]*")}
    ours = {part.name for known in catalog.values() for part in known}
    return sorted(name for name in names - ours if name.rpartition("-")[0] in kinds)
