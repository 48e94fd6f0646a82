"""Files written whole or not at all; links, devices and folders that are not there."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from atoll.errors import DiskFull, NotPermitted, UsageError
from atoll.store.files import write_atomic, write_new
from tests.parts.faults import fails


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    write_atomic(path, "new", mode=0o600)
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/file")
    write_atomic(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there/file").read_text() == "new"


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    """As /dev/stdout and /dev/null; a rename would have put a file in their place."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(path.read_text()))
    reader.start()
    write_atomic(path, "new")
    reader.join()
    assert heard == ["new"]
    assert path.is_fifo()


def test_a_full_device_is_told(tmp_path: Path) -> None:
    # Through a link, so that the test itself can never replace the device.
    (tmp_path / "full").symlink_to("/dev/full")
    with fails(DiskFull, path=tmp_path / "full"):
        write_atomic(tmp_path / "full", "new")
    assert Path("/dev/full").is_char_device()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with fails(UsageError, path=tmp_path / "no/f"):
        write_atomic(tmp_path / "no/f", "new")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with fails(UsageError, path=tmp_path):
        write_atomic(tmp_path, "new")


def test_a_new_file_is_for_its_owner_and_takes_no_place(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_new(path, "first", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    with fails(NotPermitted, path=path):
        write_new(path, "second", mode=0o600)
    assert path.read_text() == "first"
