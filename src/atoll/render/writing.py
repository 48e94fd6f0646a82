"""Writes a rendering as a folder, completely or not at all. Replaces only its own folders.

A note in the folder has the checksum of every file, so that no edited file is lost.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from atoll.engines.rendered import Rendering
from atoll.errors import UsageError
from atoll.store.files import refusal, sha256, sync_folder

NOTE = ".atoll-render.json"


def write_rendering(rendering: Rendering, folder: Path) -> int:
    """Write `folder` (0700, files 0600) and return the number of its files.

    Raises UsageError for a folder that Atoll did not write or that has been edited since,
    NotPermitted, and DiskFull. The old folder is unchanged then.
    """
    folder = folder.absolute()
    unfinished = ""
    try:
        if os.path.exists(folder) and os.path.samefile(folder, os.curdir):
            raise UsageError(
                f"{folder}: is your working folder, which Atoll would replace; change to another"
            )
        _refuse_foreign(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent)
        _fill(Path(unfinished), rendering)
        if folder.exists():
            # A folder cannot be renamed over one that is not empty.
            aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            try:
                folder.rename(aside)
                Path(unfinished).rename(folder)
            except BaseException:
                _bring_back(aside, folder)
                raise
            shutil.rmtree(aside, ignore_errors=True)
        else:
            Path(unfinished).rename(folder)
        sync_folder(folder.parent)
    except OSError as fault:
        raise refusal(fault)(
            f"{fault.filename or folder}: cannot be written ({fault.strerror})"
        ) from None
    finally:
        if unfinished:
            shutil.rmtree(unfinished, ignore_errors=True)
    return len(rendering.files) + len(rendering.scripts) + len(rendering.copies)


def _bring_back(aside: Path, folder: Path) -> None:
    """Restore the old folder, unless the new one has taken its place."""
    if folder.exists():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.rename(folder)


def _fill(root: Path, rendering: Rendering) -> None:
    for name in rendering.folders:
        (root / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, text in {**rendering.files, **rendering.scripts}.items():
        target = _made(root, path)
        with open(target, "w", encoding="utf-8", newline="") as out:
            os.fchmod(out.fileno(), 0o700 if path in rendering.scripts else 0o600)
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
    for path, source in rendering.copies.items():
        target = _made(root, path)
        shutil.copyfile(source, target)
        target.chmod(0o600)
    for path, leads_to in rendering.links.items():
        os.symlink(leads_to, _made(root, path))
    (root / NOTE).write_text(json.dumps(_checksums(root), indent=1) + "\n")


def _made(root: Path, path: str) -> Path:
    target = root / path
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return target


def _checksums(root: Path) -> dict[str, str]:
    """Path -> checksum of each file except the note, or the target of a link."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file() and name != NOTE:
            found[name] = sha256(path)
    return found


def _refuse_foreign(folder: Path) -> None:
    if not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        noted = dict(json.loads((folder / NOTE).read_bytes()))
    except (OSError, ValueError, TypeError):
        raise UsageError(
            f"{folder}: exists and was not written by 'atoll render'; give another -o"
        ) from None
    now = _checksums(folder)
    changed = sorted({path for path, _ in set(noted.items()) ^ set(now.items())})
    if changed:
        raise UsageError(
            f"{folder}: {changed[0]} has changed since it was rendered "
            f"({len(changed)} files in all); give another -o"
        )
