"""What `atoll knobs` prints: wrong usage, the table, JSON, the script for root."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from atoll.errors import NotPermitted
from atoll.host.local import LocalHost
from atoll.knobs.control import BOOT_ID, Control
from atoll.knobs.journal import JournalFolder
from tests.parts.faults import check_complaint
from tests.parts.knobs import (
    BALANCING,
    FILES,
    SWAPPINESS,
    THP,
    Kernel,
    irq,
)

Capture = pytest.CaptureFixture[str]
Atoll = Callable[..., int]


def refuse_the_folder(monkeypatch: pytest.MonkeyPatch, journal: JournalFolder) -> None:
    """As for a user who is not root."""

    def refused(self: JournalFolder) -> int:
        raise NotPermitted(f"{self.folder}: cannot keep a journal (Permission denied)")

    monkeypatch.setattr(JournalFolder, "_opened", refused)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["apply", "swappiness"], {"knob": "swappiness"}),
        (["apply", "swap=1"], {"knob": "'swap'"}),
        (["apply", "swappiness=x"], {"knob": "swappiness", "value": "'x'"}),
        (["apply", "swappiness=1", "swappiness=2"], {"knob": "swappiness"}),
        (["undo"], {"option": "--all"}),
        (["undo", "--all", "swappiness"], {"option": "--all"}),
        (["undo", "swap"], {"knob": "'swap'"}),
        (["knobs", "swap"], {"knob": "'swap'"}),
    ],
)
def test_wrong_usage_is_one_line_and_writes_nothing(
    arguments: list[str],
    named: dict[str, str],
    kernel: Kernel,
    journal: JournalFolder,
    atoll: Atoll,
    capsys: Capture,
) -> None:
    assert atoll(*arguments) == 2
    check_complaint(capsys.readouterr().err, **named)
    assert kernel.files == FILES and not journal.folder.exists()


def test_a_knob_that_is_not_there(kernel: Kernel, atoll: Atoll, capsys: Capture) -> None:
    kernel.files = {path: text for path, text in FILES.items() if "cpufreq" not in path}
    assert atoll("apply", "governor=performance") == 2
    check_complaint(capsys.readouterr().err, knob="governor")
    assert atoll("knobs") == 0
    assert re.search(r"^governor +not on this machine", capsys.readouterr().out, re.M)


def test_show_fits_80_columns_and_tells_what_was(
    journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    assert atoll("knobs") == 0
    plain = capsys.readouterr().out
    assert "BEFORE" not in plain and not journal.folder.exists()
    assert atoll("apply", "swappiness=10", "irq-affinity=24=1") == 0
    capsys.readouterr()
    assert atoll("knobs") == 0
    table = capsys.readouterr().out
    assert re.search(r"^swappiness +10 +60 +", table, re.M)
    assert atoll("knobs", *(name for name in ("governor", "thp-enabled", "swappiness"))) == 0
    pages = capsys.readouterr().out
    assert "TuneD" in pages and "before    60" in pages
    assert max(len(line) for text in (plain, table, pages) for line in text.splitlines()) <= 80


def test_show_as_json(kernel: Kernel, atoll: Atoll, capsys: Capture) -> None:
    assert atoll("apply", "swappiness=10") == 0
    kernel.files[SWAPPINESS] = "30\n"
    capsys.readouterr()
    assert atoll("knobs", "swappiness", "governor", "irq-affinity", "--json") == 1
    by_name = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert by_name["swappiness"]["values"] == {SWAPPINESS: "30"}
    assert by_name["swappiness"]["set"] == [
        {
            "path": SWAPPINESS,
            "original": "60",
            "ours": "10",
            "next": None,
            "changed_by_somebody_else": True,
        }
    ]
    assert len(by_name["governor"]["values"]) == 3
    assert by_name["irq-affinity"]["effective"] == {irq(24): "2"}


def test_without_root_a_script_is_printed_and_nothing_written(
    kernel: Kernel,
    journal: JournalFolder,
    atoll: Atoll,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuse_the_folder(monkeypatch, journal)
    assert atoll("apply", "swappiness=10", "thp-enabled=never") == 4
    printed = capsys.readouterr()
    assert "run the script on stdout as root" in printed.err and printed.err.count("\n") == 1
    assert kernel.files == FILES and not journal.folder.exists()
    lines = printed.out.splitlines()
    assert lines[:2] == ["#!/bin/sh", "# atoll apply swappiness=10 thp-enabled=never"]
    assert f"expect {SWAPPINESS} 60" in lines and f"expect {THP}/enabled madvise" in lines
    turns = [line for line in lines if "; turn " in line]
    assert [line.partition("; ")[2] for line in turns] == [
        f"turn {SWAPPINESS} 10 || back {SWAPPINESS}",
        f"turn {THP}/enabled never || back {THP}/enabled",
    ]
    for shell in ("sh", "bash"):
        subprocess.run([shell, "-n"], input=printed.out, text=True, check=True)
    assert atoll("apply", "swappiness=60") == 0  # there is nothing to do
    assert capsys.readouterr().out == "swappiness: already 60\n"


def test_without_root_undo_reads_the_journal(
    kernel: Kernel,
    journal: JournalFolder,
    atoll: Atoll,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert atoll("apply", "swappiness=10", "numa-balancing=0") == 0
    kernel.files[SWAPPINESS] = "30\n"
    refuse_the_folder(monkeypatch, journal)
    capsys.readouterr()
    assert atoll("undo", "--all") == 4
    printed = capsys.readouterr()
    assert "swappiness: somebody else changed it to 30" in printed.err
    assert f"turn {BALANCING} 1 || fail" in printed.out
    assert f"turn {SWAPPINESS}" not in printed.out


def test_without_root_the_journal_of_an_earlier_boot_means_nothing(
    kernel: Kernel,
    journal: JournalFolder,
    atoll: Atoll,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert atoll("apply", "swappiness=10") == 0
    kernel.files |= {BOOT_ID: "boot-2\n", SWAPPINESS: "60\n"}
    refuse_the_folder(monkeypatch, journal)
    capsys.readouterr()
    assert atoll("knobs") == 0
    told = capsys.readouterr()
    assert told.err == "" and "BEFORE" not in told.out


def test_control_characters_do_not_reach_the_terminal(
    kernel: Kernel, atoll: Atoll, capsys: Capture
) -> None:
    kernel.files[SWAPPINESS] = "\x1b[31m60\n"
    assert atoll("knobs") == atoll("knobs", "swappiness") == 0
    assert "\x1b" not in capsys.readouterr().out
    assert atoll("apply", "swappiness=10") == 1
    check_complaint(capsys.readouterr().err, path=SWAPPINESS)


def test_without_root_an_interrupted_set_is_settled_first(
    kernel: Kernel,
    journal: JournalFolder,
    atoll: Atoll,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Killed(BaseException):
        pass

    def die(path: str, value: str) -> None:
        if path == BALANCING:
            raise Killed

    kernel.before = die
    with pytest.raises(Killed):
        Control(kernel, journal).set([("swappiness", "10"), ("numa-balancing", "0")])
    refuse_the_folder(monkeypatch, journal)
    assert atoll("apply", "thp-enabled=never") == 4
    printed = capsys.readouterr()
    assert "interrupted change" in printed.err
    assert f"turn {SWAPPINESS} 60 || fail" in printed.out
    assert "thp-enabled" not in printed.out.replace("# atoll apply thp-enabled=never", "")
    assert atoll("knobs") == 0
    assert "interrupted command" in capsys.readouterr().err


def test_the_live_machine_is_shown_without_writing(tmp_path: Path) -> None:
    folder = JournalFolder(tmp_path / "knobs")
    states, outcome = Control(LocalHost(), folder).show()
    assert [state.knob.name for state in states if state.knob.name == "swappiness" and state.values]
    assert outcome.notes == () and not folder.folder.exists()


def test_a_dry_run_and_a_script_change_nothing(
    kernel: Kernel, journal: JournalFolder, atoll: Atoll, capsys: Capture
) -> None:
    assert atoll("apply", "swappiness=10", "--dry-run") == 0
    assert capsys.readouterr().out == "would set swappiness: 60 -> 10\n"
    assert atoll("apply", "swappiness=10", "--script") == 0
    assert f"turn {SWAPPINESS} 10 || back" in capsys.readouterr().out
    assert kernel.files == FILES and not journal.folder.exists()
    assert atoll("apply", "swappiness=10") == 0
    capsys.readouterr()
    assert atoll("undo", "--all", "--dry-run") == 0
    assert capsys.readouterr().out == "would set swappiness: 10 -> 60, as before\n"
    assert atoll("undo", "--all", "--script") == 0
    assert f"turn {SWAPPINESS} 60 || fail" in capsys.readouterr().out
    assert kernel.value(SWAPPINESS) == "10"


def test_status_lists_the_knobs_that_are_set(
    atoll: Atoll, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert atoll("apply", "swappiness=10", "numa-balancing=0") == 0
    capsys.readouterr()
    assert atoll("status") == 2  # no deployment is up
    assert capsys.readouterr().out.startswith("knobs set: swappiness, numa-balancing (")
    assert atoll("undo", "--all") == 0
    capsys.readouterr()
    assert atoll("status") == 2
    assert capsys.readouterr().out == ""
