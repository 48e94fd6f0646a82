"""The knobs as root on a real kernel: killed before every system call, refused, raced, scripted.

Every knob that the guest's kernel has is turned at once; CPU frequencies, which it lacks, are
played by a tmpfs. What happened comes from tests/vm/inside/knobs.py and is judged here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from atoll.guest import topology
from atoll.guest.guest import Guest

pytestmark = pytest.mark.parametrize("guest", ["milan2:knobs"], indirect=True, scope="session")

KILLED = -9
Points = list[dict[str, Any]]


@pytest.fixture(scope="module")
def found(guest: Guest) -> dict[str, Any]:
    scenarios = ("kills", "refusals", "scripts")
    argv = [sys.executable, "-m", "tests.vm.inside.knobs", *scenarios]
    done = guest.run(argv, timeout_s=900)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_every_knob_takes_part(found: dict[str, Any]) -> None:
    for paths in found["kills"]["switches"].values():
        assert set(paths) & set(found["kills"]["asked"])
    assert len(found["kills"]["asked"]) == 14


@pytest.mark.parametrize("command", ["set", "undo", "settle"])
def test_killed_anywhere_it_is_settled_by_show_and_undone_exactly(
    command: str, found: dict[str, Any]
) -> None:
    points: Points = found["kills"][command]
    asked = found["kills"]["asked"]
    assert [point["ended"] for point in points] == [KILLED] * (len(points) - 1) + [0]
    for number, point in enumerate(points):
        assert point["show"] == 0 and point["action"] is None, number
        assert point["settled"] in ([], asked), f"half a command is left after call {number}"
        assert point["undo"] == 0 and point["left"] == [], f"not restored after call {number}"
        # Nothing is left of a journal that was half written.
        assert set(point["files"]) <= {"journal.json", "lock"}
    # It was killed with any number of switches turned.
    turned = {len(point["at_death"]) for point in points}
    assert turned == set(range((len(asked) // 2 if command == "settle" else len(asked)) + 1))
    assert found["kills"]["after_all"]


def test_an_interrupted_set_stands_only_if_it_was_whole(found: dict[str, Any]) -> None:
    for point in found["kills"]["set"]:
        whole = point["at_death"] == found["kills"]["asked"]
        assert point["settled"] == (found["kills"]["asked"] if whole else [])


def test_an_interrupted_undo_is_finished(found: dict[str, Any]) -> None:
    points: Points = found["kills"]["undo"]
    settled = [point["settled"] for point in points]
    begun = settled.index([])
    assert begun > 0 and all(each == [] for each in settled[begun:])
    assert points[begun]["at_death"] == found["kills"]["asked"]  # its intent was on disk by then


def test_an_interrupt_that_cannot_move_takes_the_whole_set_back(found: dict[str, Any]) -> None:
    refused = found["refusals"]["refused"]
    assert refused["status"] == 4
    assert "/proc/irq/2/smp_affinity_list: 0 refused: Operation not permitted" in refused["err"]
    assert found["refusals"]["after_refusal"]


def test_what_somebody_else_changed_is_left_alone(found: dict[str, Any]) -> None:
    told = found["refusals"]
    assert told["foreign"]["status"] == 1
    assert "swappiness: somebody else changed it to 30" in told["foreign"]["err"]
    assert told["foreign"]["out"] == "thp-enabled: never -> always, as before\n"
    assert told["foreign_value"] == "30\n"
    assert told["put_back"]["status"] == 0 and told["after_foreign"]


def test_another_boot_s_journal_is_dropped(found: dict[str, Any]) -> None:
    told = found["refusals"]
    assert (told["boot"]["status"], told["boot_value"]) == (0, "10\n")
    assert "set before the last boot (it was 60); forgotten" in told["boot"]["out"]


def test_four_at_once_take_turns(found: dict[str, Any]) -> None:
    told = found["refusals"]
    assert told["at_once"] == [0, 0, 0, 0]
    assert told["set_at_once"].strip() in ("10", "20", "30", "40")
    assert told["after_all"]  # the one original survived them all


def test_without_root_the_script_does_the_same(found: dict[str, Any]) -> None:
    told = found["scripts"]
    assert told["set"]["status"] == told["undo"]["status"] == 4
    assert "run the script on stdout as root" in told["set"]["err"]
    assert told["untouched"]
    assert told["set_ran"] == [0, ""] and told["set_as_wanted"]
    assert told["again"][0] == 1 and "print a new one" in told["again"][1]
    assert told["shown"] == 0
    assert told["undo_ran"] == [0, ""] and told["undone"]


def test_a_script_that_is_killed_is_settled_by_the_command(found: dict[str, Any]) -> None:
    cut = found["scripts"]["cut"]
    assert len(cut) == 6 and any(begun for _, begun, *_ in cut)
    for died, _, shown, whole, undone, restored in cut:
        assert (died, shown, undone) == (KILLED, 0, 0) and whole and restored


def test_a_script_takes_back_what_is_refused_and_runs_only_as_printed(
    found: dict[str, Any],
) -> None:
    told = found["scripts"]
    assert told["refused"][0] == 4 and "undone" in told["refused"][1]
    assert told["after_refusal"]
    assert told["changed"][0] == 1 and "/proc/sys/vm/swappiness: changed" in told["changed"][1]
    assert told["after_all"]
    assert told["not_root"] == 4


@pytest.mark.long
def test_after_a_real_reboot_the_journal_is_dropped(guest: Guest, tmp_path: Path) -> None:
    """Two boots with one /var/lib/atoll; the second starts with the kernel's own values."""

    def boot(*commands: str) -> subprocess.CompletedProcess[str]:
        script = textwrap.dedent(f"""\
            mkdir -p /var/lib/atoll && mount --bind {tmp_path} /var/lib/atoll || exit 99
            """) + "\n".join(commands)
        with Guest(topology.load("milan2"), shares=[tmp_path]) as fresh:
            done = fresh.run(["sh", "-c", script], timeout_s=120)
        return subprocess.CompletedProcess([], done.returncode, done.stdout, done.stderr)

    atoll = f"{sys.executable} -m atoll"
    first = boot(f"{atoll} apply swappiness=10")
    assert (first.returncode, first.stdout) == (0, "swappiness: 60 -> 10\n")
    second = boot(f"{atoll} undo --all && cat /proc/sys/vm/swappiness")
    assert second.returncode == 0
    assert second.stdout == "swappiness: set before the last boot (it was 60); forgotten\n60\n"
