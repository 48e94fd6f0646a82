"""Folders that cannot be made are reported in one line, with the exit code that fits."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from atoll.errors import AtollError, DiskFull, NotPermitted
from atoll.store.paths import cache_dir, state_dir
from tests.parts.faults import fails


def test_folders_lie_where_xdg_says_and_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = cache_dir("a", "b")
    assert made == tmp_path / "atoll/a/b"
    assert made.stat().st_mode & 0o777 == 0o700


def test_a_relative_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "somewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_dir() == tmp_path / ".local/state/atoll"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EROFS, NotPermitted),
        (errno.EACCES, NotPermitted),
        (errno.ENOTDIR, NotPermitted),
    ],
)
def test_a_folder_that_cannot_be_made(
    number: int, kind: type[AtollError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    cache, state = ("XDG_CACHE_HOME", cache_dir), ("XDG_STATE_HOME", state_dir)
    for setting, made in (cache, state):
        monkeypatch.setenv(setting, str(tmp_path))
        why = os.strerror(number)
        with fails(kind, path=tmp_path / "atoll/x", why=why, setting=setting):
            made("x")
