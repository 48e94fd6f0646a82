"""The journal's folder on a real disk: users who can write there control what undo writes."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.errors import DiskFull, DownloadFailed, UsageError
from atoll.host.local import LocalHost
from atoll.knobs.control import Control
from atoll.knobs.journal import JournalFolder
from tests.parts.faults import fails
from tests.parts.knobs import BALANCING, FILES, SWAPPINESS, Kernel, governor


@pytest.fixture(params=[0o077, 0o000])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_everybody_reads_and_nobody_else_writes_whatever_the_umask_is(
    kernel: Kernel, journal: JournalFolder
) -> None:
    Control(kernel, journal).set([("swappiness", "10")])
    paths = (journal.folder.parent, journal.folder, journal.path, journal.lock)
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o755, 0o755, 0o644, 0o600]


@pytest.mark.parametrize("which", ["folder", "its parent"])
def test_in_a_folder_that_others_can_write_to_nothing_is_kept(
    which: str, kernel: Kernel, journal: JournalFolder
) -> None:
    journal.folder.mkdir(parents=True, mode=0o755)
    folder = journal.folder if which == "folder" else journal.folder.parent
    folder.chmod(0o775)
    with fails(UsageError, folder=folder):
        Control(kernel, journal).set([("swappiness", "10")])
    assert kernel.files == FILES and not journal.path.exists()


def test_a_lock_that_leads_elsewhere_is_not_followed(
    kernel: Kernel, journal: JournalFolder, tmp_path: Path
) -> None:
    journal.folder.mkdir(parents=True)
    journal.lock.symlink_to(tmp_path / "made")
    with fails(DownloadFailed, path=journal.folder):
        Control(kernel, journal).set([("swappiness", "10")])
    assert not (tmp_path / "made").exists() and kernel.files == FILES


@pytest.mark.parametrize(
    ("knob", "path"),
    [
        ("swappiness", "/proc/../etc/passwd"),
        ("swappiness", BALANCING),
        ("governor", f"{governor(0)}/../../../../../../../../proc/sysrq-trigger"),
        ("of-tomorrow", SWAPPINESS),
    ],
)
def test_undo_reaches_no_file_but_the_knobs(
    knob: str, path: str, kernel: Kernel, journal: JournalFolder
) -> None:
    kernel.files[path] = "2\n"
    before = dict(kernel.files)
    switch = {"knob": knob, "path": path, "original": "1", "ours": "2"}
    journal.folder.mkdir(parents=True)
    journal.path.write_text(
        json.dumps(
            {
                "format": "atoll/knobs",
                "version": 1,
                "boot_id": "boot-1",
                "changed_unix_s": 0.0,
                "switches": [switch],
            }
        )
    )
    with fails(UsageError, journal=journal.path, path=path, knob=repr(knob)):
        Control(kernel, journal).undo([])
    assert kernel.files == before


def test_a_full_disk_is_told_with_what_comes_next(
    kernel: Kernel, journal: JournalFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    def fill(path: str, value: str) -> None:
        monkeypatch.setattr(os, "fsync", full)

    kernel.before = fill  # what is begun is on disk, its end is not
    with fails(DiskFull, path=journal.path):
        Control(kernel, journal).set([("swappiness", "10"), ("numa-balancing", "0")])
    monkeypatch.undo()
    kernel.before = lambda path, value: None
    _, outcome = Control(kernel, journal).show()
    assert len(outcome.notes) == 2
    assert (kernel.value(SWAPPINESS), kernel.value(BALANCING)) == ("10", "0")
    Control(kernel, journal).undo([])
    assert kernel.files == FILES


def test_a_plain_file_in_the_place_of_a_kernels_keeps_nothing_of_a_longer_value(
    tmp_path: Path,
) -> None:
    stand_in = tmp_path / "scaling_governor"
    stand_in.write_text("performance\n")
    LocalHost().write_text(str(stand_in), "powersave\n")
    assert stand_in.read_text() == "powersave\n"
    with pytest.raises(FileNotFoundError):
        LocalHost().write_text(str(tmp_path / "none"), "1\n")
    assert not (tmp_path / "none").exists()
