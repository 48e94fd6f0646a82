"""Folders that are made once, whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from atoll.errors import DiskFull, NotPermitted
from atoll.store.locks import is_locked, locked, try_lock
from atoll.store.once import copy_tree, is_being_made, lock_of, make_once, put, staging
from tests.parts.faults import fails


def fill(folder: Path) -> None:
    folder.mkdir()
    (folder / "rows").write_text("all")


def test_of_several_at_once_one_makes_and_the_others_wait(tmp_path: Path) -> None:
    makers: list[Path] = []
    waiting = threading.Event()

    def make(folder: Path) -> None:
        makers.append(folder)
        assert is_being_made(tmp_path)
        assert waiting.wait(60)
        fill(folder)

    def once() -> None:
        make_once(tmp_path / "t", make, what="a thing", waiting=waiting.set)

    threads = [threading.Thread(target=once) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(makers) == 1
    assert (tmp_path / "t/rows").read_text() == "all"
    assert not is_being_made(tmp_path)


def test_what_is_not_whole_is_replaced_and_stays_until_then(tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.mkdir()
    (target / "old").touch()

    def fails_late(folder: Path) -> None:
        fill(folder)
        raise KeyboardInterrupt

    for make in (fails_late, fill):
        assert (target / "old").exists()
        try:
            make_once(target, make, what="a thing", is_whole=lambda folder: False)
        except KeyboardInterrupt:
            continue
    assert os.listdir(target) == ["rows"]
    assert sorted(os.listdir(tmp_path)) == [".t.lock", "t"]


def test_a_folder_without_room_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leftover = tmp_path / ".t.unfinished/t"
    leftover.mkdir(parents=True)

    def free_bytes(folder: Path) -> int:
        assert not leftover.exists(), "what a killed process left takes up room"
        return 1 << 10

    monkeypatch.setattr("atoll.store.once._free_bytes", free_bytes)
    with fails(DiskFull, folder=tmp_path, what="a thing", free="1 KiB", needed="1 MiB"):
        make_once(tmp_path / "t", fill, what="a thing", needed_bytes=1 << 20)
    assert not (tmp_path / "t").exists()


def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / ".t.lock").mkdir()
    with fails(NotPermitted, what="a thing", path=lock_of(tmp_path / "t")):
        make_once(tmp_path / "t", fill, what="a thing")


def test_the_old_folder_comes_back_if_the_new_one_cannot_be_put_there(tmp_path: Path) -> None:
    target = tmp_path / "t"
    target.mkdir()
    with staging(target) as stage, pytest.raises(OSError, match="No such file"):
        put(stage / "missing", target)
    assert target.is_dir()


def test_a_copy_has_all_files_and_raises_the_fault_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_text("x")
    copy_tree(str(tmp_path / "a"), str(tmp_path / "z"))
    assert (tmp_path / "z/b/c").read_text() == "x"
    with pytest.raises(FileExistsError):
        copy_tree(str(tmp_path / "a"), str(tmp_path / "z"))


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    with locked(path):
        assert is_locked(path)
        with path.open() as other:
            assert not try_lock(other.fileno())
    assert not is_locked(path)
