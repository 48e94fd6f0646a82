"""The text of a kernel's result: where its lines came from, how many threads ran."""

from __future__ import annotations

from atoll.report.terminal.workload import kernel_text
from atoll.schema.kernel import Concurrency, KernelFills, KernelResult

RESULT = KernelResult(
    workload="gups",
    scheduler="atoll",
    approach="static-local",
    workers=8,
    arrays="partitioned",
    pages="transparent",
    seed=1,
    parameters={},
    make_s=0,
    runs_s=(1.0, 1.0),
    work=1,
    unit="updates",
    per_s=1,
    traffic_bytes=None,
    peak_bytes=1,
    fills=None,
    figures={},
)


def test_lines_are_those_of_the_last_run_and_say_who_counted_them() -> None:
    assert "  lines" not in kernel_text(RESULT)
    runs: tuple[dict[str, int | None], ...] = (
        {"local_chiplet": 1},
        {"local_chiplet": 3_000_000, "remote_node": None, "memory_local": 1_000_000},
    )
    fills = KernelFills(source="simulated", chiplets=4, runs=runs)
    said = " ".join(kernel_text(RESULT.model_copy(update={"fills": fills})).split())
    words = "lines 4.00 million simulated in the last run, on 4 chiplets: "
    assert words + "local chiplet 75.0%, memory local 25.0%" in said


def test_threads_are_drawn_in_little_where_the_terminal_can() -> None:
    counted = Concurrency(every_s=0.005, running=(0, 1, 2, 4), threads_created=5)
    result = RESULT.model_copy(update={"concurrency": counted})
    assert "\n  threads 1.8 on average, 5 created ▁▃▅█\n" in kernel_text(result)
    assert "\n  threads 1.8 on average, 5 created\n" in kernel_text(result, draws=False)
    short = counted.model_copy(update={"running": ()})
    assert "too short" in kernel_text(RESULT.model_copy(update={"concurrency": short}))
