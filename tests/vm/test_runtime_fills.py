"""The runtime's controller on simulated fills, in a guest: counts are as the sizes of sets and
caches say, and each decision is the one that the counts ask for.

The judge has the topology file, and the numbers that each decision was shown
(native/tests/runtime/guests/fills.cpp).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atoll.guest import topology
from atoll.guest.guest import Guest
from atoll.schema.base import parse
from atoll.schema.duckdb_profile import DuckDBProfile
from tests.vm import workload_fills
from tests.vm.native import program

SMALL = str(Path(__file__).parent / "small_caches.toml")
WORKERS = 4
SHARED_KIB = 2560  # more than an L3 has, less than two
PRIVATE_KIB = 1280  # an L3 has room for one, and not for two

# FillLatency of controller.hpp: what a fill costs above one from the own L3.
CHIPLET_NS, NODE_NS, MEMORY_NS = 108 - 23, 200 - 23, 110 - 23
HYSTERESIS = 1.25
LONG = 200  # decisions: `adaptive` leaves a spread alone for 64 that once did not pay
RATE, TIMER_S = 300, 0.002  # of algorithm 1
# Sets are not equally full, workers meet after each round, and the kernel has lines of its own.
NOISE = 0.05
# Eight lines are asked for at once; another chiplet may take one away before its update.
HAND_OVER = 0.15
# The table that is built has more than an L3 of these. A run takes most of a simulated second.
QUERY = """select count(*)
from (select range as id from range(150000)) build
join (select (range * 7919) % 150000 as id from range(3000000)) probe using (id)"""

Line = dict[str, Any]


def run(guest: Guest, approach: str, *phases: str) -> tuple[list[Line], list[Line]]:
    """All decisions, and what the second half of each phase has counted."""
    argv = [program("runtime-fills-guest"), approach, str(WORKERS), *phases]
    done = guest.run(argv, timeout_s=240)
    assert done.returncode == 0, done.stderr
    print(done.stdout, file=sys.stderr)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line for line in lines if "to" in line], [line for line in lines if "work" in line]


def judge_fills(end: Line) -> None:
    """By arithmetic; a line that no chiplet has at the moment comes from memory."""
    machine = topology.load(SMALL)
    memory = end["memory_local"] + end["memory_remote"]
    others = end["remote_chiplet"] + end["remote_node"]
    lines = end["local_chiplet"] + others + memory
    if end["work"] == "private":
        fits = machine.l3_kib * end["spread"] >= PRIVATE_KIB * WORKERS
        assert lines == pytest.approx(end["things"], rel=NOISE), end
        # Of two whose sets do not fit, one may run ahead, and reads its own so often that it stays.
        least = 1 if fits else 1 / 2
        assert (end["local_chiplet"] if fits else memory) > (least - NOISE) * lines, end
    else:
        room = (machine.l3_kib + machine.l2_kib) / SHARED_KIB
        assert end["local_chiplet"] == pytest.approx(room * lines, abs=NOISE * lines), end
        assert memory < ((1 - room) ** end["spread"] + NOISE) * lines, end


def judgements(decisions: list[Line]) -> Iterator[tuple[Line, list[Line]]]:
    """Those of `adaptive`, each with the samples that it is of."""
    samples: list[Line] = []
    for line in decisions:
        samples = [] if line["reason"] == "settles" else [*samples, line]
        if line["reason"] not in ("settles", "measures"):
            yield line, samples
            samples = []


def judge_adaptive(decisions: list[Line]) -> None:
    for judgement, samples in judgements(decisions):
        memory = MEMORY_NS * sum(sample["memory"] for sample in samples)
        others = sum(
            CHIPLET_NS * sample["other_chiplets"] + NODE_NS * sample["other_nodes"]
            for sample in samples
        )
        if judgement["reason"].startswith("spreads"):
            assert judgement["to"] == judgement["spread"] + 1, judgement
            assert memory >= HYSTERESIS * others, (judgement, samples)
        if judgement["reason"].startswith("compacts"):
            assert judgement["to"] == judgement["spread"] - 1, judgement
            assert others >= HYSTERESIS * memory, (judgement, samples)


def judge_printed(decisions: list[Line], least: int, most: int) -> None:
    """Algorithm 1."""
    fills = elapsed_s = 0.0
    for line in decisions:
        fills += line["other_chiplets"] + line["other_nodes"]
        elapsed_s += line["simulated_s"]
        wanted = line["spread"]
        if not line["reason"].startswith("before SCHEDULER_TIMER"):
            assert elapsed_s > TIMER_S * (1 - 1e-4), line  # printed with six digits
            wanted += 1 if fills * TIMER_S / elapsed_s >= RATE else -1
            fills = elapsed_s = 0
        assert elapsed_s < TIMER_S * (1 + 1e-4), line
        assert line["to"] == min(max(wanted, least), most), line


@pytest.mark.parametrize("guest", [SMALL + ":simulated-10000"], indirect=True, ids=["small_caches"])
def test_the_controller_follows_simulated_fills(guest: Guest) -> None:
    decisions, ends = run(
        guest, "adaptive", f"shared:{SHARED_KIB}:{LONG}", f"private:{PRIVATE_KIB}:60"
    )
    for end in ends:
        judge_fills(end)
    judge_adaptive(decisions)
    # All read the same, which spreading brings no nearer; then each wants an L3 of its own.
    assert [end["spread"] for end in ends] == [2, 4]


@pytest.mark.parametrize("guest", [SMALL + ":simulated-10000"], indirect=True, ids=["small_caches"])
def test_who_may_not_read_the_board_is_said(guest: Guest) -> None:
    argv = ["setpriv", "--reuid=65534", program("runtime-fills-guest"), "adaptive", "2", "sum:64:1"]
    done = guest.run(argv, timeout_s=60)
    assert done.returncode == 2
    said = (
        r"fills: n/a \(simulated caches: /sys/bus/pci/devices/[^/]*/resource2: Permission denied\)"
    )
    assert re.fullmatch(f"runtime-fills-guest: {said}; run as root\n", done.stderr), done.stderr


@pytest.mark.parametrize("guest", [SMALL + ":simulated-10000"], indirect=True, ids=["small_caches"])
def test_a_workloads_updates_get_their_lines_from_the_chiplets_that_they_use(guest: Guest) -> None:
    """GUPS in a table for which two L3s have room: whoever changed a line last has it. The check of
    the table makes as many updates again, by one worker, and is not counted."""
    node, machine = (
        workload_fills.run(guest, "gups", ("--table-mib", "4"), f"static-{approach}")
        for approach in ("local", "distributed")
    )
    for found, chiplets in ((node, 4), (machine, 8)):
        assert found.fills is not None and found.fills.source == "simulated"
        assert found.fills.chiplets == chiplets
        lines = {source: found.fills.runs[-1][source] or 0 for source in workload_fills.SOURCES}
        others = lines["remote_chiplet"] + lines["remote_node"]
        # Of two updates of a line by one chiplet in a row, the second finds it there.
        assert others == pytest.approx(found.work * (1 - 1 / chiplets), rel=HAND_OVER), lines
        assert lines["memory_local"] + lines["memory_remote"] < NOISE * found.work, lines
        beyond = 0 if chiplets == 4 else 4 / 7
        assert lines["remote_node"] == pytest.approx(beyond * others, abs=NOISE * others), lines


@pytest.mark.long
@pytest.mark.parametrize("guest", [SMALL + ":simulated-10000"], indirect=True, ids=["small_caches"])
def test_each_approach_decides_by_its_own_rule(guest: Guest) -> None:
    shared, private = f"shared:{SHARED_KIB}:40", f"private:{PRIVATE_KIB}:60"
    for approach, spreads in (("static-local", [2, 2]), ("static-distributed", [4, 4])):
        _, ends = run(guest, approach, shared, private)
        for end in ends:
            judge_fills(end)
        assert [end["spread"] for end in ends] == spreads

    decisions, ends = run(guest, f"arcas-2025:{RATE}:{TIMER_S * 1000:.0f}", shared, private)
    judge_fills(ends[0])
    judge_printed(decisions, 2, 4)
    # It spreads what is shared, which gains nothing, and takes back room that is needed. The way
    # back is itself many fills from the chiplets that were left, so it spreads again.
    assert ends[0]["spread"] == 4
    assert any(line["to"] < line["spread"] for line in decisions), decisions

    decisions, ends = run(guest, "adaptive", private, f"shared:{SHARED_KIB}:{LONG}")
    for end in ends:
        judge_fills(end)
    judge_adaptive(decisions)
    assert [end["spread"] for end in ends] == [4, 2]


@pytest.mark.long
@pytest.mark.parametrize("guest", [SMALL + ":simulated-10000"], indirect=True, ids=["small_caches"])
def test_duckdb_is_steered_by_simulated_fills(guest: Guest, root: Path) -> None:
    argv = [sys.executable, "-m", "tests.vm.inside.duckdb_fills", str(WORKERS), "2", QUERY]
    done = guest.run(argv, timeout_s=600, cwd=str(root))
    assert done.returncode == 0, done.stderr
    profile = parse(DuckDBProfile, done.stdout, where="stdout")
    assert profile.runtime.fills_source == "simulated"
    assert profile.runtime.remarks[0].startswith("fills: simulated")
    first, *later = profile.queries
    assert first.reason == "first run: as wide as possible"
    for query in later:
        assert query.fills is not None
        assert (query.fills.memory_local or 0) + (query.fills.local_chiplet or 0) > 0, query
    # Only an approach that has fills speaks of them.
    assert any("of busy time" in change.reason for change in profile.spreads), profile.spreads
