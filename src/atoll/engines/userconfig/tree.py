"""Reads a user's configuration tree, for engines that can be started with it. Writes nothing.

A file is a text (UTF-8 without a NUL, at most 1 MiB) or something else, a keystore say, whose path
alone is kept. Links are followed, wherever they lead: configuration is often linked together.
Names that begin with a dot (.git, an editor's swap file) are no configuration and are passed over.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from dataclasses import replace

from atoll.engines.api import Base, BasedEngine, Engine
from atoll.engines.calls import based
from atoll.errors import NotPermitted, UsageError
from atoll.host.api import Host

MOST_TEXT_BYTES = 1 << 20
# What is larger is not a configuration folder: somebody gave / or a home.
MOST_FILES = 2000
MOST_DEPTH = 12

# Where a byte order mark would become a part of the first name.
_MARKLESS = (".properties", ".config", ".conf", ".cnf")
# Names that engines read as text: what is no UTF-8 in them is a fault, and no keystore.
_TEXT_ENDINGS = (".properties", ".config", ".conf", ".cnf", ".json", ".xml", ".sh")


def on_base(
    engine: Engine, root: str | None, host: Host, *, starts: bool = True
) -> tuple[Engine, Base | None]:
    """The engine with the configuration below `root`, and that; None: with Atoll's own.

    `starts`: from here, so that the configuration may name variables of our environment.

    Raises UsageError for an engine that cannot take one, and as `read_base` and `on` do.
    """
    if root is None:
        return engine, None
    if not isinstance(engine, BasedEngine):
        raise UsageError(
            f"{engine.traits.name} cannot be started with a configuration of yours; "
            "leave out --base"
        )
    base = read_base(root, host)
    if starts:
        base = replace(base, environment=dict(os.environ))
    return based(engine, base), base


def read_base(root: str, host: Host) -> Base:
    """The tree below `root`. Raises UsageError for what is no such folder, NotPermitted for a
    folder that this user cannot read. A file that he cannot is the engine's to refuse: a package's
    folder has some for its own account (debian.cnf, pg_hba.conf), which not all engines take."""
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
        raise UsageError(f"{folder}: no configuration file is in it")
    return Base(folder, texts, tuple(others), tuple(closed))


def _files(root: str, below: str, host: Host) -> Iterator[str]:
    """Paths below `root` of what is no folder, in their order."""
    folder = f"{root}/{below}".rstrip("/")
    try:
        names = host.list_dir(folder)
    except NotADirectoryError:
        if not below:
            raise UsageError(f"{root}: is a file; give the configuration's folder") from None
        yield below.rstrip("/")
        return
    except OSError as fault:
        raise _refused(folder, fault) from None
    if below.count("/") > MOST_DEPTH:
        raise UsageError(f"{folder}: too many folders deep; does a link lead in a circle?")
    for name in names:
        if not name.startswith("."):
            yield from _files(root, f"{below}{name}/", host)


def _text(root: str, path: str, host: Host) -> str | None:
    full = f"{root}/{path}"
    try:
        # First, because a pipe's reader waits: a size is known of regular files only.
        if host.file_size(full) > MOST_TEXT_BYTES:
            return None
        content = host.read_bytes(full, size=MOST_TEXT_BYTES)
        if content.startswith(codecs.BOM_UTF8) and path.endswith(_MARKLESS):
            raise UsageError(f"{full}:1: begins with a byte order mark; write UTF-8 without one")
        if b"\0" in content:
            return None
        return content.decode()
    except UnicodeDecodeError as fault:
        if not path.endswith(_TEXT_ENDINGS):
            return None
        line = content.count(b"\n", 0, fault.start) + 1
        raise UsageError(f"{full}:{line}: is not UTF-8; write it so") from None
    except OSError as fault:
        raise _refused(full, fault) from None


def _refused(path: str, fault: OSError) -> UsageError | NotPermitted:
    if isinstance(fault, PermissionError):
        return NotPermitted(f"{path}: cannot be read ({fault.strerror}); make it readable for you")
    if isinstance(fault, FileNotFoundError):
        return UsageError(f"{path}: is not there, or is a link that leads nowhere")
    return UsageError(f"{path}: cannot be read ({fault.strerror})")
