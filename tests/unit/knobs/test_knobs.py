"""`atoll knobs` on a kernel in memory: the journal on disk, the exit codes, what is left alone.

The same on a real kernel, as root and killed at every system call: tests/vm/test_knobs.py.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable

import pytest

from atoll.errors import CheckFailed, UsageError
from atoll.knobs.control import BOOT_ID, Control
from atoll.knobs.journal import JournalFolder
from atoll.schema.base import parse
from atoll.schema.knobs import Journal
from tests.parts.faults import fails
from tests.parts.knobs import (
    BALANCING,
    FILES,
    SWAPPINESS,
    THP,
    WEIGHTS,
    Kernel,
    governor,
    irq,
)

Capture = pytest.CaptureFixture[str]
Atoll = Callable[..., int]


def on_disk(journal: JournalFolder) -> Journal:
    found = journal.read()
    assert found is not None
    return found


def test_set_and_undo(
    kernel: Kernel, journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    asked = [
        "numa-balancing=0",
        "thp-enabled=never",
        "weighted-interleave=0=3",
        "irq-affinity=24=0",
        "governor=performance",
    ]
    assert atoll("apply", *asked) == 0
    assert capsys.readouterr().out.splitlines() == [
        "governor: 0-1=powersave,10=schedutil -> performance",
        "irq-affinity: 24=0-3 -> 24=0",
        "numa-balancing: 1 -> 0",
        "thp-enabled: madvise -> never",
        "weighted-interleave: 0=5 (auto) -> 0=3 (manual)",
    ]
    assert kernel.files[f"{THP}/enabled"] == "always madvise [never]\n"
    assert on_disk(journal).action is None
    assert atoll("undo", "--all") == 0
    assert "numa-balancing: 0 -> 1, as before" in capsys.readouterr().out
    assert kernel.files == FILES
    assert on_disk(journal).switches == ()
    assert atoll("undo", "--all") == 0
    assert capsys.readouterr().out == "knobs: nothing to undo\n"


def test_the_old_value_and_the_boot_are_on_disk_before_the_switch_is_written(
    kernel: Kernel, journal: JournalFolder, atoll: Atoll, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        calls.append(
            "fsync " + ("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        )
        real_fsync(descriptor)

    def replace(source: str, target: str) -> None:
        calls.append("rename")
        real_replace(source, target)

    def written(path: str, value: str) -> None:
        calls.append("switch")
        found = on_disk(journal)
        (switch,) = found.switches
        assert found.boot_id == "boot-1"
        assert (switch.path, switch.original, switch.next) == (path, "60", value)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    kernel.before = written
    assert atoll("apply", "swappiness=10") == 0
    kept = ["fsync file", "rename", "fsync folder"]
    assert calls == [*kept, "switch", *kept]


def test_set_twice_undoes_to_the_first_value(kernel: Kernel, atoll: Atoll) -> None:
    assert atoll("apply", "swappiness=10") == 0
    assert atoll("apply", "swappiness=20") == 0
    assert atoll("undo", "swappiness") == 0
    assert kernel.files == FILES


def test_set_back_by_hand_of_atoll_leaves_no_entry(journal: JournalFolder, atoll: Atoll) -> None:
    assert atoll("apply", "swappiness=10") == 0
    assert atoll("apply", "swappiness=60") == 0
    assert on_disk(journal).switches == ()


def test_what_it_has_already_is_not_journalled(
    journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    assert atoll("apply", "swappiness=60", "thp-enabled=madvise") == 0
    assert capsys.readouterr().out == "swappiness: already 60\nthp-enabled: already madvise\n"
    assert journal.read() is None


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EBUSY, errno.EPERM, errno.EIO])
def test_what_the_kernel_refuses_half_way_is_taken_back(
    number: int, kernel: Kernel, journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    kernel.refused[governor(10)] = number
    assert atoll("apply", "swappiness=10", "governor=performance") == 4
    said = capsys.readouterr()
    assert f"{governor(10)}: performance refused: {os.strerror(number)}" in said.err
    assert "swappiness: 60 again" in said.out
    assert kernel.files == FILES
    assert on_disk(journal).switches == ()


def test_what_cannot_be_taken_back_stays_in_the_journal(
    kernel: Kernel, journal: JournalFolder, atoll: Atoll
) -> None:
    kernel.refused = {(SWAPPINESS, "60"): errno.EIO, governor(0): errno.EIO}
    assert atoll("apply", "swappiness=10", "governor=performance") == 4
    (switch,) = on_disk(journal).switches
    assert (switch.path, switch.original, switch.ours) == (SWAPPINESS, "60", "10")
    kernel.refused = {}
    assert atoll("undo", "--all") == 0
    assert kernel.files == FILES


def test_somebody_elses_value_is_reported_and_left_alone(
    kernel: Kernel, journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    assert atoll("apply", "swappiness=10", "numa-balancing=0") == 0
    kernel.files[SWAPPINESS] = "30\n"
    for arguments in (
        ["knobs"],
        ["apply", "swappiness=20"],
        ["undo", "--all"],
        ["undo", "swappiness"],
    ):
        capsys.readouterr()
        assert atoll(*arguments) == 1
        assert (
            "swappiness: somebody else changed it to 30 after it was set to 10 (originally 60); "
            "left unchanged. 'atoll apply swappiness=30' takes it over"
        ) in capsys.readouterr().err
        assert kernel.value(SWAPPINESS) == "30"
    assert kernel.value(BALANCING) == "1"  # that was undone all the same
    assert atoll("apply", "swappiness=30") == 0
    assert atoll("undo", "swappiness") == 0
    assert kernel.files == FILES


@pytest.mark.parametrize(
    ("asked", "theirs", "takes_over"),
    [
        ("governor=performance", {governor(0): "schedutil"}, "governor=0=schedutil"),
        (
            "governor=performance",
            {governor(1): "schedutil", governor(10): "powersave"},
            "governor=1=schedutil,10=powersave",
        ),
        ("irq-affinity=24=0,25=0", {irq(24): "0-1,3"}, "irq-affinity=24=0-1,3"),
        ("weighted-interleave=0=3", {f"{WEIGHTS}/node1": "9"}, "weighted-interleave=1=9"),
    ],
)
def test_what_is_told_to_take_a_value_over_does(
    asked: str,
    theirs: dict[str, str],
    takes_over: str,
    kernel: Kernel,
    atoll: Atoll,
    capsys: Capture,
) -> None:
    assert atoll("apply", asked) == 0
    kernel.files |= {path: f"{value}\n" for path, value in theirs.items()}
    before = dict(kernel.files)
    for arguments in (["knobs"], ["apply", asked]):
        capsys.readouterr()
        assert atoll(*arguments) == 1
        assert f"'atoll apply {takes_over}' takes it over" in capsys.readouterr().err
    assert kernel.files == before
    assert atoll("apply", takes_over) == 0
    assert kernel.files == before
    assert atoll("knobs") == 0
    assert atoll("undo", "--all") == 0
    assert kernel.files == FILES


def test_nothing_is_told_where_nothing_takes_it_over(
    kernel: Kernel, atoll: Atoll, capsys: Capture
) -> None:
    kernel.files[f"{WEIGHTS}/auto"] = "false\n"
    assert atoll("apply", "weighted-interleave=0=3") == 0
    kernel.write_text(f"{WEIGHTS}/auto", "true")
    capsys.readouterr()
    assert atoll("undo", "--all") == 1
    told = capsys.readouterr().err
    assert "somebody else" in told and "takes it over" not in told


def test_policies_without_a_cpu_online_are_passed_over(
    kernel: Kernel, atoll: Atoll, capsys: Capture
) -> None:
    kernel.offline(1)
    assert atoll("apply", "governor=performance") == 0
    assert [kernel.files[governor(p)] for p in (0, 1, 10)] == [
        "performance\n",
        "powersave\n",
        "performance\n",
    ]
    assert atoll("apply", "governor=1=performance") == 2
    assert "no CPU policy with CPUs online 1 here; choose from 0,10" in capsys.readouterr().err
    assert atoll("undo", "--all") == 0
    assert kernel.files == FILES


def test_what_went_offline_is_undone_when_it_is_back(
    kernel: Kernel, journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    assert atoll("apply", "governor=performance") == 0
    kernel.offline(1)
    for arguments in (["knobs"], ["undo", "--all"]):
        capsys.readouterr()
        assert atoll(*arguments) == 1
        told = capsys.readouterr().err
        assert governor(1) in told and "somebody else" not in told
    assert [switch.path for switch in on_disk(journal).switches] == [governor(1)]
    kernel.unreadable = {}
    assert atoll("undo", "--all") == 0
    assert kernel.files == FILES


def test_a_value_that_somebody_put_back_is_done_with(
    kernel: Kernel, journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    assert atoll("apply", "swappiness=10") == 0
    kernel.files[SWAPPINESS] = "60\n"
    assert atoll("undo", "swappiness") == 0
    assert "somebody else restored it" in capsys.readouterr().out
    assert on_disk(journal).switches == ()


def test_weights_are_left_alone_together(kernel: Kernel, atoll: Atoll) -> None:
    """To write `auto` back would overwrite the one that somebody else has changed."""
    assert atoll("apply", "weighted-interleave=0=3") == 0
    kernel.files[f"{WEIGHTS}/node1"] = "9\n"
    assert atoll("undo", "--all") == 1
    assert [kernel.value(f"{WEIGHTS}/{name}") for name in ("auto", "node0", "node1")] == [
        "false",
        "3",
        "9",
    ]


def test_weights_that_stay_are_read_after_an_interrupted_set_was_taken_back(
    kernel: Kernel, journal: JournalFolder, atoll: Atoll
) -> None:
    class Killed(BaseException):
        pass

    def die(path: str, value: str) -> None:
        if path == SWAPPINESS:
            raise Killed

    kernel.before = die
    with pytest.raises(Killed):
        Control(kernel, journal).set([("weighted-interleave", "1=9"), ("swappiness", "10")])
    assert kernel.value(f"{WEIGHTS}/node1") == "9"
    kernel.before = lambda path, value: None
    assert atoll("apply", "weighted-interleave=0=3") == 0
    assert kernel.value(f"{WEIGHTS}/node1") == "2"


def test_other_interrupts_are_undone_without_the_one_that_was_moved(
    kernel: Kernel, atoll: Atoll
) -> None:
    assert atoll("apply", "irq-affinity=24=0,25=1") == 0
    kernel.files[irq(24)] = "5\n"
    assert atoll("undo", "irq-affinity") == 1
    assert (kernel.value(irq(24)), kernel.value(irq(25))) == ("5", "4-7")


def test_entries_of_an_earlier_boot_are_dropped_and_not_written(
    kernel: Kernel, journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    assert atoll("apply", "swappiness=10") == 0
    kernel.files[BOOT_ID] = "boot-2\n"
    kernel.files[SWAPPINESS] = "10\n"  # also where the value would fit
    kernel.before = lambda path, value: pytest.fail(f"{path} was written")
    capsys.readouterr()
    assert atoll("undo", "swappiness") == 0
    assert capsys.readouterr().out == (
        "swappiness: set before the last boot (it was 60); forgotten\n"
    )
    assert on_disk(journal).switches == ()


def test_an_interrupt_that_is_gone_is_told_and_kept(
    kernel: Kernel, journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    assert atoll("apply", "irq-affinity=24=0") == 0
    del kernel.files[irq(24)]
    assert atoll("undo", "irq-affinity") == 1
    assert f"{irq(24)}: no such file" in capsys.readouterr().err
    assert len(on_disk(journal).switches) == 1


def test_what_a_killed_command_half_wrote_is_removed(journal: JournalFolder, atoll: Atoll) -> None:
    assert atoll("apply", "swappiness=10") == 0
    (journal.folder / ".journal.json.x1y2").write_text("{")
    assert atoll("undo", "--all") == 0
    assert sorted(path.name for path in journal.folder.iterdir()) == ["journal.json", "lock"]


def test_one_command_at_a_time(kernel: Kernel, journal: JournalFolder, atoll: Atoll) -> None:
    assert atoll("apply", "swappiness=10") == 0
    with open(journal.lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with fails(CheckFailed, path=journal.lock):
            Control(kernel, journal).undo([])
        assert kernel.now_s == pytest.approx(10, abs=0.1)
        states, _ = Control(kernel, journal).show()  # it waits for nobody
    assert [state.knob.name for state in states if state.switches] == ["swappiness"]


def test_a_journal_that_cannot_be_read_is_not_overwritten(
    journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    assert atoll("apply", "swappiness=10") == 0
    journal.path.write_text('{"format": "atoll/knobs"')
    for arguments in (["knobs"], ["apply", "swappiness=20"], ["undo", "--all"]):
        assert atoll(*arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert journal.path.read_text() == '{"format": "atoll/knobs"'


@pytest.mark.parametrize("path", ["/etc/passwd", "/sys/../etc/x y", "sys/a"])
def test_a_journal_names_no_file_but_those_of_the_kernel(path: str) -> None:
    switch = {"knob": "swappiness", "path": path, "original": "1", "ours": "2"}
    text = json.dumps(
        {
            "format": "atoll/knobs",
            "version": 1,
            "boot_id": "b",
            "changed_unix_s": 0.0,
            "switches": [switch],
        }
    )
    with pytest.raises(UsageError):
        parse(Journal, text, where="journal.json")
