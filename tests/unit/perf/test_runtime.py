"""What `make perf-runtime` makes of Google Benchmark's output, and which rounds count."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perf import runtime
from perf.harness import WrongAnswer
from perf.runtime import KERNELS, Kernel, Report, TooBusy, clean_rounds
from perf.runtime_runs import Run, run_of

Capture = pytest.CaptureFixture[str]


def output(**changed: object) -> str:
    """Of one run of fib on two threads: 5 ms for a thousand forks."""
    benchmark: dict[str, object] = {
        "name": "fib/2/real_time",
        "real_time": 5e6,
        "time_unit": "ns",
        "items": 1000.0,
        "cpu_share": 0.98,
        "others_share": 0.01,
        "iterations": 7,
    }
    return json.dumps(
        {"context": {"runtime": "oneTBB 2021.8"}, "benchmarks": [benchmark | changed]}
    )


def a_run(item_ns: float, cpu_share: float = 1.0, others_share: float = 0.0) -> Run:
    return Run("fib", 2, "oneTBB", item_ns, cpu_share, others_share, {"p50_ns": item_ns})


def test_a_run_is_read() -> None:
    run = run_of(output(p50_ns=41.5), "fib", 2)
    assert (run.runtime, run.item_ns, run.cpu_share) == ("oneTBB 2021.8", 5000.0, 0.98)
    assert run.counters["p50_ns"] == 41.5


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "fib/1/real_time"},  # not what was asked for
        {"name": "fib/20/real_time"},
        {"error_occurred": True, "error_message": "wrong answer: fib"},
        {"items": 0.0},
        {"real_time": 0.0},
        {"time_unit": "ms"},
        {"cpu_share": "much"},
    ],
)
def test_a_run_that_did_not_do_its_work_is_refused(changed: dict[str, object]) -> None:
    with pytest.raises(WrongAnswer, match="fib/"):
        run_of(output(**changed), "fib", 2)


def test_the_fault_of_a_kernel_is_passed_on() -> None:
    text = output(error_occurred=True, error_message="wrong answer: a task was lost")
    with pytest.raises(WrongAnswer, match="fib/2: wrong answer: a task was lost"):
        run_of(text, "fib", 2)


def test_two_runs_are_not_one() -> None:
    answer = json.loads(output())
    answer["benchmarks"] *= 2
    with pytest.raises(WrongAnswer):
        run_of(json.dumps(answer), "fib", 2)


@given(st.text() | st.just("null") | st.just('{"benchmarks": [1]}'))
def test_no_text_is_more_than_refused(text: str) -> None:
    with contextlib.suppress(WrongAnswer):
        run_of(text, "fib", 2)


@pytest.mark.parametrize(
    ("cpu_share", "others_share", "clean"),
    [
        (0.93, 0.5, True),  # it had its CPUs, whatever others did with the rest
        (0.92, 0.08, False),
        (0.3, 0.07, True),  # it slept by itself: nobody else had its CPUs
        (0.3, 0.6, False),
    ],
)
def test_a_run_counts_if_it_had_its_cpus(
    cpu_share: float, others_share: float, clean: bool
) -> None:
    assert a_run(1.0, cpu_share, others_share).is_clean is clean


@pytest.fixture
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "busy_share", lambda window_s: 0.0)


@pytest.mark.usefixtures("_no_waiting")
def test_a_run_without_its_cpus_is_repeated() -> None:
    given_out = iter([a_run(90.0, 0.5, 0.5), a_run(10.0), a_run(11.0)])
    found = clean_rounds({"ours": lambda: next(given_out)}, 2, patience_s=60.0)
    assert [run.item_ns for run in found["ours"]] == [10.0, 11.0]


@pytest.mark.usefixtures("_no_waiting")
def test_a_round_counts_whole_or_not_at_all() -> None:
    ours = iter([a_run(1.0), a_run(2.0), a_run(3.0), a_run(4.0)])
    # In the second round the peer goes first, and its run is not clean.
    peer = iter([a_run(5.0), a_run(60.0, 0.1, 0.9), a_run(7.0), a_run(8.0)])
    subjects = {"ours": lambda: next(ours), "peer": lambda: next(peer)}
    found = clean_rounds(subjects, 4, patience_s=0.0)
    assert [run.item_ns for run in found["ours"]] == [1.0, 3.0, 4.0]
    assert [run.item_ns for run in found["peer"]] == [5.0, 7.0, 8.0]


@pytest.mark.usefixtures("_no_waiting")
def test_a_busy_machine_gives_no_figure() -> None:
    with pytest.raises(TooBusy, match="0 of 3 rounds"):
        clean_rounds({"ours": lambda: a_run(1.0, 0.1, 0.9)}, 3, patience_s=0.0)


def _bar_of(kernel: Kernel, ns: dict[str, float], capsys: Capture) -> tuple[list[str], Report]:
    report = Report("whole", {})
    assert kernel.bar is not None
    series = {name: np.full(5, value) for name, value in ns.items()}
    runtime._say_bar(kernel, kernel.bar, series, report)
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if line.startswith("bar")], report


def test_bars_stand_beside_their_fastest_peer(capsys: Capture) -> None:
    fib = next(kernel for kernel in KERNELS if (kernel.name, kernel.threads) == ("fib", 1))
    lines, report = _bar_of(fib, {"atoll": 20.0, "oneTBB": 80.0, "rayon": 40.0}, capsys)
    assert lines == ["bar runtime-fib-1t-to-rayon-ratio 0.5 0.6 ok"]
    assert report.bars == [{"name": "runtime-fib-1t-to-rayon-ratio", "value": 0.5, "ok": True}]
    lines, _ = _bar_of(fib, {"atoll": 60.0, "oneTBB": 80.0}, capsys)
    assert lines == ["bar runtime-fib-1t-to-onetbb-ratio 0.75 0.6 short"]
    lines, report = _bar_of(fib, {"atoll": 20.0}, capsys)  # no such peer here
    assert (lines, report.bars) == ([], [])


def test_the_wake_up_stands_beside_the_faster_of_openmps_two(capsys: Capture) -> None:
    passive = {"OpenMP passive, task": 30.0, "OpenMP passive, region": 25.0}
    lines, _ = _bar_of(runtime.WAKE, {"atoll": 26.0, "bare futex": 20.0} | passive, capsys)
    assert lines == ["bar runtime-wake-2t-to-openmp-passive-region-ratio 1.04 1 short"]


def test_the_profiler_is_held_against_the_same_work_without_it(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ns = {"atoll": 1000.0, "atoll, profiled": 1009.0}

    def measured(*_: object) -> dict[str, list[Run]]:
        return {name: [a_run(value)] * 5 for name, value in ns.items()}

    monkeypatch.setattr(runtime, "_measured", measured)
    report = Report("whole", {})
    runtime._say_profiler(runtime.WHOLE, frozenset(), report)
    assert "bar runtime-profiler-overhead-ratio 1.009 1.01 ok" in capsys.readouterr().out
    assert report.bars[0]["ok"] is True
    ns["atoll, profiled"] = 1011.0
    runtime._say_profiler(runtime.WHOLE, frozenset(), report)
    assert "bar runtime-profiler-overhead-ratio 1.011 1.01 short" in capsys.readouterr().out


def test_every_bar_has_its_peer_among_the_subjects() -> None:
    kernels = [*KERNELS, runtime.WAKE, runtime.STEAL, runtime.PROFILER]
    for kernel in kernels:
        assert kernel.bar is None or set(kernel.bar.peers) <= set(kernel.peers)
    labels = [kernel.label for kernel in kernels]
    assert len(set(labels)) == len(labels)
