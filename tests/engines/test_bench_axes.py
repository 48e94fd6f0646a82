"""Grids with real DuckDB: every axis that one machine can vary, killed in each phase, resumed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from atoll.bench.analysis import summarise
from atoll.bench.job import NAME
from atoll.bench.results import Results, read_results
from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.knobs.journal import FOLDER, JournalFolder
from atoll.probing.allocators import library_of
from atoll.report.bench.render import render
from atoll.schema.plan import Malloc
from atoll.schema.results import PassDone, QueryTime, RunEnd, VerifyResult
from tests.parts.deployment import until, until_gone

pytestmark = pytest.mark.installed

HOST = LocalHost()
ATOLL = (sys.executable, "-m", "atoll", "bench", "duckdb", "--sf", "0.01", "--queries", "1,6")
# The journal's folder cannot be written by what follows.
READ_ONLY = (
    *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c"),
    'mount -t tmpfs -o ro none /var/lib && exec "$@"',
    "sh",
)
SWAPPINESS = Path("/proc/sys/vm/swappiness")


def atoll(*arguments: str, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, *ATOLL, *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def loadable() -> Malloc:
    for malloc in Malloc:
        if malloc is not Malloc.SYSTEM:
            with contextlib.suppress(UsageError):
                library_of(malloc, HOST)
                return malloc
    pytest.skip("no other malloc can be loaded here; make test-engines installs libtbbmalloc2")


@pytest.fixture
def swappiness() -> Iterator[tuple[str, str]]:
    """Its present value and another one."""
    if not os.access(SWAPPINESS, os.W_OK) or os.getuid() != 0:
        pytest.skip("only root can turn knobs")
    # One test at a time, whichever process runs it: the knob is the machine's.
    with (Path(tempfile.gettempdir()) / "atoll-tests-knob.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = SWAPPINESS.read_text().strip()
        yield before, "10" if before != "10" else "20"
        assert SWAPPINESS.read_text().strip() == before
        assert not (FOLDER / "bench.json").exists()


def passes(found: Results) -> list[tuple[int, str]]:
    return [(one.block, one.label) for one in found.lines if isinstance(one, PassDone)]


def test_the_axes_of_one_machine(tmp_path: Path) -> None:
    path, malloc = tmp_path / "r.jsonl", loadable().value
    axes = ("thp=system,never", f"malloc=system,{malloc}", "cores=1,2", "streams=1,2")
    options = [word for axis in axes for word in ("--axis", axis)]
    done = atoll(*options, "--axis", "scheduler=duckdb,atoll", "--blocks", "1", "-o", str(path))
    assert done.returncode == 0, done.stderr
    assert "in each of 1 block" in done.stderr, "how much it is, before the first start"
    assert done.stderr.index("in each of 1 block") < done.stderr.index("starting")

    found = read_results(path)
    labels = [one.label for one in found.header.entrants]
    assert labels[0] == "duckdb/wim" and found.header.entrants[0].baseline is None
    for label in (
        "duckdb/wim, masked/cores=1",
        f"duckdb/wim/malloc={malloc}",
        "duckdb/wim/thp=never",
        "duckdb/wim/streams=2",
        "duckdb/wim/atoll",
    ):
        assert label in labels
    assert passes(found) == [(0, label) for label in labels]
    looks = [one for one in found.lines if isinstance(one, VerifyResult)]
    assert len(looks) == len(labels) and not any(one.drifted for one in looks)
    assert {one.answer for one in found.lines if isinstance(one, QueryTime)} == {"ok"}
    masked = next(one for one in found.header.entrants if one.label.endswith("cores=1"))
    assert masked.plan is not None and len(masked.plan.slots[0].cpus or ()) == 1
    streams = next(one for one in found.header.entrants if one.label.endswith("streams=2"))
    measured = [
        one
        for one in found.lines
        if isinstance(one, QueryTime) and one.label == streams.label and one.phase == "measured"
    ]
    assert {one.stream for one in measured} == {0, 1}

    summary = summarise(found)
    assert {axis.name for axis in summary.axes} == {
        *("cores", "malloc", "thp", "streams", "scheduler"),
    }
    page = render(found, "html")
    assert all(f'data-axis="{axis.name}"' in page for axis in summary.axes)


# What the file has when the bench is killed: text, and how often.
PHASES = {
    "before the first start": ('"record":"header"', 1),
    "warming up": ('"record":"query"', 1),
    "measuring": ('"record":"up"', 1),
    "in the middle of a block": ('"record":"pass"', 1),
    "starting the second block": ('"record":"pass"', 3),
    "in the second block": ('"record":"pass"', 4),
}


@pytest.mark.parametrize(
    "phase",
    [
        phase
        if phase in ("measuring", "starting the second block")
        else pytest.param(phase, marks=pytest.mark.long)
        for phase in PHASES
    ],
)
def test_a_grid_that_was_killed_loses_no_block_and_no_knob(
    phase: str, tmp_path: Path, swappiness: tuple[str, str]
) -> None:
    before, other = swappiness
    path = tmp_path / "r.jsonl"
    knob = f"knob:swappiness={other},{before}"
    options = ("--axis", knob, "--axis", "thp=system,never", "--blocks", "2", "-o", str(path))
    text, times = PHASES[phase]

    def lines() -> int:
        return path.read_text().count(text) if path.exists() else 0

    with subprocess.Popen([*ATOLL, *options], stderr=subprocess.DEVNULL) as bench:
        until(lambda: lines() >= times or bench.poll() is not None, lambda: phase)
        bench.send_signal(signal.SIGKILL)
    assert bench.returncode == -signal.SIGKILL
    until_gone(NAME)
    left = read_results(path)
    whole = left.whole_blocks
    kept = [one for one in left.lines if getattr(one, "block", whole) < whole]
    assert whole == (1 if times >= 3 else 0)

    again = atoll(*options, "--resume")
    assert again.returncode == 0, again.stderr
    # Another bench may have restored the knob first; the fixture looks whether it is.
    found = read_results(path)
    assert list(found.lines[: len(kept)]) == kept
    labels = [one.label for one in found.header.entrants]
    assert len(labels) == 3
    assert sorted(passes(found)) == sorted((block, one) for block in (0, 1) for one in labels)
    assert isinstance(found.lines[-1], RunEnd) and found.header.notes == left.header.notes
    journal = JournalFolder().read()
    assert journal is not None and not [one for one in journal.switches if one.knob == "swappiness"]


def test_a_machine_that_has_changed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    options = ("--axis", "cores=1,2", "--blocks", "1", "-o", str(path))
    assert atoll(*options).returncode == 0
    cpu = min(os.sched_getaffinity(0))
    again = atoll(*options, "--resume", prefix=("taskset", "-c", str(cpu)))
    assert again.returncode == 2
    assert "it differs in its affinity" in again.stderr and f"{cpu} now" in again.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_restore_a_knob(
    number: signal.Signals, tmp_path: Path, swappiness: tuple[str, str]
) -> None:
    before, other = swappiness
    path = tmp_path / "r.jsonl"
    options = ("--axis", f"knob:swappiness={before},{other}", "--blocks", "9", "-o", str(path))
    # The tests may run under nohup, which the bench would heed.
    command = ("env", "--default-signal=HUP", *ATOLL, *options)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as bench:
        until(
            lambda: SWAPPINESS.read_text().strip() == other and path.exists(),
            lambda: "it was not turned",
        )
        bench.send_signal(number)
    assert bench.returncode == 130
    end = read_results(path).end
    assert end is not None and end.status == "stopped"


def test_a_knob_needs_a_journal(tmp_path: Path) -> None:
    """As for another user, or in a container: only root of the machine may keep one."""
    path = tmp_path / "r.jsonl"
    done = atoll("--axis", "knob:swappiness=10,60", "-o", str(path), prefix=READ_ONLY)
    assert done.returncode == 4, done.stderr
    assert "only root turns knobs" in done.stderr
    assert not path.exists(), "nothing was started"


def test_a_grid_without_time_is_refused_with_the_largest_that_fits(tmp_path: Path) -> None:
    axes = ("--axis", "thp=system,never", "--axis", "streams=1,2,3,4")
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    done = atoll(*axes, "--within", "1s", "-o", str(first))
    assert done.returncode == 2
    assert "5 blocks, the least for an interval" in done.stderr
    assert 1 <= len(passes(read_results(first))) <= 5, "by its first deployments"
    assert f"{first} keeps what was measured" in done.stderr
    again = atoll(*axes, "--within", "1s", "-o", str(second))
    assert again.returncode == 2 and "starting" not in again.stderr
    assert "in a.jsonl" in again.stderr, "it names the file that it knows this by"
    assert not second.exists(), "now it is known before the first start"
