"""Reads a user's configuration folder. Writes nothing.

A file is either text (UTF-8 without a NUL, at most 1 MiB) or something else, such as a keystore, of
which only the path is kept. Links are followed, wherever they lead: configuration is often linked
together. Names that begin with a dot (.git, an editor's swap file) are skipped.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from atoll.errors import NotPermitted, UsageError
from atoll.host.api import Host

MOST_TEXT_BYTES = 1 << 20
# A larger folder is not a configuration folder: somebody gave / or a home folder.
MOST_FILES = 2000
MOST_DEPTH = 12

# Files in which a byte order mark would become part of the first name.
MARKLESS = (".properties", ".config", ".conf", ".cnf")
# Files that engines read as text: if they are not UTF-8, that is an error and not a keystore.
_TEXT_ENDINGS = (".properties", ".config", ".conf", ".cnf", ".json", ".xml", ".sh")


@dataclass(frozen=True, slots=True)
class UserTree:
    """A user's own configuration folder, read once. Nothing is ever written into it."""

    root: str  # an absolute path
    texts: Mapping[str, str]  # path below the root -> content
    others: tuple[str, ...] = ()  # paths below the root of files that are not text: keystores
    closed: tuple[str, ...] = ()  # paths below the root of files that this user cannot read
    # Ports at which something listens on this machine; none if the engine is only rendered.
    taken_ports: frozenset[int] = frozenset()
    # The caller's environment; None where the configuration is only rendered (`atoll render`).
    environment: Mapping[str, str] | None = field(default=None, repr=False)


def read_tree(root: str, host: Host) -> UserTree:
    """The tree below `root`.

    Raises UsageError for a path that is not a configuration folder, NotPermitted for a folder
    that this user cannot read. A file that this user cannot read is listed in `closed`, for the
    engine to refuse if it needs it: packages keep some files for their own account, and not every
    engine reads every file.
    """
    folder = os.path.abspath(root)
    texts: dict[str, str] = {}
    others: list[str] = []
    closed: list[str] = []
    for path in _files(folder, "", host):
        if len(texts) + len(others) + len(closed) == MOST_FILES:
            raise UsageError(
                f"{folder}: more than {MOST_FILES} files; give the engine's configuration folder"
            )
        try:
            text = _text(folder, path, host)
        except NotPermitted:
            closed.append(path)
            continue
        if text is None:
            others.append(path)
        else:
            texts[path] = text
    if not texts and not closed:
        raise UsageError(f"{folder}: contains no configuration file")
    return UserTree(folder, texts, tuple(others), tuple(closed))


def _files(root: str, below: str, host: Host) -> Iterator[str]:
    """Paths below `root` of everything that is not a folder, in order."""
    folder = f"{root}/{below}".rstrip("/")
    try:
        names = host.list_dir(folder)
    except NotADirectoryError:
        if not below:
            raise UsageError(f"{root}: is a file; give the configuration folder") from None
        yield below.rstrip("/")
        return
    except OSError as fault:
        raise _refused(folder, fault) from None
    if below.count("/") > MOST_DEPTH:
        raise UsageError(f"{folder}: nested too deeply; does a link lead in a circle?")
    for name in names:
        if not name.startswith("."):
            yield from _files(root, f"{below}{name}/", host)


def _text(root: str, path: str, host: Host) -> str | None:
    full = f"{root}/{path}"
    try:
        # First, because reading a pipe would block: only regular files have a size.
        if host.file_size(full) > MOST_TEXT_BYTES:
            return None
        content = host.read_bytes(full, size=MOST_TEXT_BYTES)
        if content.startswith(codecs.BOM_UTF8) and path.endswith(MARKLESS):
            raise UsageError(f"{full}:1: begins with a byte order mark; re-save it without one")
        if b"\0" in content:
            return None
        return content.decode()
    except UnicodeDecodeError as fault:
        if not path.endswith(_TEXT_ENDINGS):
            return None
        line = content.count(b"\n", 0, fault.start) + 1
        raise UsageError(f"{full}:{line}: is not UTF-8; re-save it as UTF-8") from None
    except OSError as fault:
        raise _refused(full, fault) from None


def unreadable(path: str, why: str | None) -> NotPermitted:
    return NotPermitted(f"{path}: cannot be read ({why}); give yourself read permission")


def _refused(path: str, fault: OSError) -> UsageError | NotPermitted:
    if isinstance(fault, PermissionError):
        return unreadable(path, fault.strerror)
    if isinstance(fault, FileNotFoundError):
        return UsageError(f"{path}: does not exist, or is a broken link")
    return UsageError(f"{path}: cannot be read ({fault.strerror})")
