"""The count around a measured pass, with a fake `atoll-fills`, and in a bench."""

from __future__ import annotations

import pytest

from atoll.bench.analysis import summarise
from atoll.host.processes import Finished
from atoll.inspect.fills import FillCount, fill_count
from atoll.schema.results import PassDone, PassFills
from tests.parts.bench import IDLE, WIM, Run, header
from tests.parts.fake_host import FakeHost
from tests.parts.fills import BOARD, FakeFills

REFUSED = Finished(1, "", "usage\natoll-fills: /sys/.../resource2: Permission denied\n")


def counted(fills: FakeFills, *, warm: bool = True) -> PassFills | None:
    with fill_count(FakeHost(BOARD, on_run=fills)) as count:
        if warm:
            count.begin()
        count.measure()
        count.measured()
        return count.of_pass(0, "duckdb/wim")


@pytest.mark.parametrize("warm", [True, False])
def test_the_measured_pass_alone_is_recorded(warm: bool) -> None:
    fills = FakeFills()
    found = counted(fills, warm=warm)
    assert found is not None and found.fills is not None and not found.fault
    assert found.fills.sources().own_l3 == 10
    assert found.fills.cycles == 10_000
    assert fills.said == ["on", "read", "read", "off"]


def test_without_the_device_nothing_is_started() -> None:
    no_board = {path: text for path, text in BOARD.items() if "04.0" not in path}
    for files in ({}, no_board):
        count = FillCount(FakeHost(files, on_run=FakeFills(fails={"on": OSError("started")})))
        count.measure()
        count.measured()
        assert count.of_pass(0, "duckdb/wim") is None


def test_another_device_of_this_kind_without_the_program_is_no_fault() -> None:
    fills = FakeFills(fails={"on": FileNotFoundError(2, "no such program")})
    assert counted(fills) is None
    assert fills.said == ["on"]


@pytest.mark.parametrize(
    ("verb", "failure", "said", "fault"),
    [
        ("on", REFUSED, ["on"], "on: /sys/.../resource2: Permission denied"),
        ("on", Finished(2, "", ""), ["on"], "on: ended with 2"),
        (
            "on",
            PermissionError(13, "Permission denied"),
            ["on"],
            "on: [Errno 13] Permission denied",
        ),
        ("read", REFUSED, ["on", "read", "off"], "read: /sys/.../resource2: "),
        ("read", Finished(0, "{", ""), ["on", "read", "off"], "read: answer: Invalid JSON"),
        ("read", Finished(0, "{}", ""), ["on", "read", "off"], "read: quantum_cycles: Field requ"),
    ],
)
def test_what_fails_is_told_and_what_began_is_ended(
    verb: str, failure: Finished | OSError, said: list[str], fault: str
) -> None:
    fills = FakeFills(fails={verb: failure})
    found = counted(fills)
    assert found is not None and found.fills is None
    assert fault in found.fault
    assert fills.said == said


def test_counts_that_begin_again_in_the_pass_are_none() -> None:
    fills = FakeFills()
    with fill_count(FakeHost(BOARD, on_run=fills)) as count:
        count.measure()
        fills.lines = -10
        count.measured()
        found = count.of_pass(0, "duckdb/wim")
    assert found is not None and found.fills is None
    assert "began the count again" in found.fault
    assert fills.said[-1] == "off"


def test_fills_stay_if_only_the_end_fails() -> None:
    found = counted(FakeFills(fails={"off": REFUSED}))
    assert found is not None and found.fills is not None
    assert found.fault.startswith("atoll-fills off: ")


def bench(fills: FakeFills, warmups: int) -> Run:
    run = Run(header(WIM, blocks_asked=2, warmups=warmups))
    run.bench.host = run.engines.host = FakeHost({**IDLE, **BOARD}, on_run=fills)
    asked = fills.said.append
    run.engines.trouble = lambda label, sql: asked(sql)
    run.bench.run()
    return run


@pytest.mark.parametrize(
    ("warmups", "order"),
    [
        (2, "q1 q6 on q1 q6 read q1 q6 read off"),
        (1, "on q1 q6 read q1 q6 read off"),
        (0, "on read q1 q6 read off"),
    ],
)
def test_a_bench_counts_from_the_last_warm_up_on(warmups: int, order: str) -> None:
    fills = FakeFills()
    run = bench(fills, warmups)
    assert " ".join(fills.said) == f"{order} {order}"
    assert [(line.block, line.label) for line in run.of(PassFills)] == [
        (0, "spark/wim"),
        (1, "spark/wim"),
    ]
    kinds = [type(record) for record in run.records]
    assert kinds.index(PassFills) + 1 == kinds.index(PassDone)


def test_a_bench_goes_on_with_a_warning_if_nothing_can_be_counted() -> None:
    run = bench(FakeFills(fails={"on": REFUSED}), 1)
    assert len(run.of(PassDone)) == 2
    (said,) = [
        one.message for one in summarise(run.results).warnings if one.code == "fills-uncounted"
    ]
    assert said == (
        "spark/wim: simulated fills were not counted in every pass: "
        "atoll-fills on: /sys/.../resource2: Permission denied"
    )


def test_a_pass_that_breaks_off_ends_the_count_and_has_no_fills() -> None:
    fills = FakeFills()
    run = Run(header(WIM, blocks_asked=1, warmups=0))
    run.bench.host = run.engines.host = FakeHost({**IDLE, **BOARD}, on_run=fills)
    run.engines.dead = lambda label, turn: True
    run.bench.run()
    assert fills.said == ["on", "read", "read", "off"]
    assert not run.of(PassFills)
