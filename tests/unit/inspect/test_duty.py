"""Operators' duty from their threads' CPU time: a made-up /proc, any samples, and real threads."""

from __future__ import annotations

import os
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.host.local import LocalHost
from atoll.inspect.duty import WINDOW_S, Moment, look, sample, watched
from atoll.inspect.tasks import Thread
from atoll.schema.operator_graph import Overlap, Source
from tests.parts.fake_host import FakeHost
from tests.parts.proc import stat

SCAN, JOIN, SINK = (Thread(7, tid) for tid in (8, 9, 10))


def moments(*shares: tuple[float, ...], length_s: float = WINDOW_S) -> list[Moment]:
    """Of SCAN, JOIN, ... : by window, the share of it that each was busy."""
    threads = (SCAN, JOIN, SINK)[: len(shares[0])]
    used = dict.fromkeys(threads, 100.0)
    found = [Moment(5.0, dict(used))]
    for number, window in enumerate(shares, start=1):
        for thread, share in zip(threads, window, strict=True):
            used[thread] += share * length_s
        found.append(Moment(5.0 + number * length_s, dict(used)))
    return found


def test_duty_is_the_mean_and_peak_the_95th_percentile() -> None:
    found = watched(moments(*[(0.2,)] * 36, *[(0.9,)] * 3, (1.0,)), {"scan": [SCAN]}, ())
    activity = found.activity["scan"]
    assert found.seconds == pytest.approx(4.0)
    assert activity.duty.value == pytest.approx((36 * 0.2 + 3 * 0.9 + 1.0) / 40)
    assert activity.duty.source is Source.MEASURED
    assert activity.peak is not None
    assert activity.peak.value == pytest.approx(0.9)


def test_few_windows_have_no_percentile() -> None:
    assert watched(moments(*[(0.2,)] * 19), {"scan": [SCAN]}, ()).activity["scan"].peak is None


def test_threads_of_an_operator_add() -> None:
    found = watched(moments(*[(0.8, 0.9)] * 20), {"scan": [SCAN, JOIN]}, ()).activity["scan"]
    assert found.duty.value == pytest.approx(1.7)
    assert found.peak is not None
    assert found.peak.value == pytest.approx(1.7)


def test_a_thread_is_busy_for_at_most_a_whole_window() -> None:
    """Its time comes at the next tick, so one window may get some of the one before."""
    late = watched(moments(*[(0.96,), (1.04,)] * 10), {"scan": [SCAN]}, ()).activity["scan"]
    assert late.duty.value == pytest.approx(1.0)
    assert late.peak is not None
    assert late.peak.value == 1.0


def test_overlap_counts_windows_in_which_both_are_busy() -> None:
    by_turns = [(0.9, 0.01, 0.5), (0.02, 0.9, 0.5)] * 10
    found = watched(
        moments(*by_turns),
        {"scan": [SCAN], "join": [JOIN], "sink": [SINK], "lost": [Thread(1, 1)]},
        [("scan", "join"), ("join", "sink"), ("sink", "lost")],
    )
    assert found.overlaps == (
        Overlap(giver="scan", taker="join", share=0.0),
        Overlap(giver="join", taker="sink", share=0.5),
    )
    assert found.activity.keys() == {"scan", "join", "sink"}, "nothing is known of the lost one"


def test_a_thread_that_ends_counts_until_then_and_is_named() -> None:
    whole = moments(*[(0.5, 0.5)] * 20)
    ends = [
        Moment(one.at_s, {t: s for t, s in one.cpu_s.items() if t != JOIN or number <= 10})
        for number, one in enumerate(whole)
    ]
    found = watched(ends, {"scan": [SCAN], "join": [JOIN]}, [("scan", "join")])
    (note,) = found.notes
    assert note.startswith("1 thread ended")
    assert found.activity["join"].duty.value == pytest.approx(0.25)
    assert found.overlaps[0].share == pytest.approx(0.5)


def test_no_time_has_no_duty() -> None:
    for none in ([], [Moment(5.0, {})], [Moment(5.0, {}), Moment(5.0, {})]):
        with pytest.raises(ValueError, match="two moments"):
            watched(none, {}, ())


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**10).map(lambda ns: ns / 1e9),  # as clocks count
            st.dictionaries(st.sampled_from([SCAN, JOIN, SINK]), st.floats(0, 1e6)),
        ),
        min_size=2,
        max_size=40,
    )
)
def test_whatever_the_kernel_counts_the_figures_are_possible(
    looks: list[tuple[float, dict[Thread, float]]],
) -> None:
    at_s, found = 0.0, []
    for passed_s, used in looks:
        at_s += passed_s
        found.append(Moment(at_s, used))
    if at_s - found[0].at_s <= 0:
        return
    result = watched(found, {"a": [SCAN, JOIN], "b": [SINK]}, [("a", "b")])
    for one in result.activity.values():
        assert one.peak is None or 0 <= one.peak.value <= 2
    assert all(0 <= overlap.share <= 1 for overlap in result.overlaps)


class Ticking(FakeHost):
    """A thread that is busy for a quarter of the time."""

    def read_text(self, path: str) -> str:
        if path.endswith("/schedstat"):
            return f"{1e9 + self.now_s * 0.25e9:.0f} 5 6\n"
        return super().read_text(path)


def test_sampling_takes_a_look_for_each_window() -> None:
    found = sample(Ticking(), [SCAN], seconds=3.0)
    assert len(found) == 31
    assert watched(found, {"scan": [SCAN]}, ()).activity["scan"].duty.value == pytest.approx(0.25)


@pytest.mark.parametrize("schedstat", [None, "0 0 0\n"])
def test_without_schedstat_the_time_is_in_ticks(schedstat: str | None) -> None:
    fields = stat(8, 1).split()
    fields[13], fields[14] = "120", "30"
    host = FakeHost({"/proc/7/task/8/stat": " ".join(fields)})
    if schedstat is not None:
        host.files["/proc/7/task/8/schedstat"] = schedstat
    assert look(host, [SCAN, JOIN]).cpu_s == {SCAN: 1.5}


def test_real_threads() -> None:
    stop, tids = threading.Event(), list[int]()

    def work() -> None:
        tids.append(threading.get_native_id())
        while not stop.is_set():
            pass

    def wait() -> None:
        tids.append(threading.get_native_id())
        stop.wait()

    threads = [threading.Thread(target=run) for run in (work, wait)]
    for thread in threads:
        thread.start()
        while not tids or len(tids) < threads.index(thread) + 1:
            time.sleep(0.001)
    operators = {
        name: [Thread(os.getpid(), tid)] for name, tid in zip(("work", "wait"), tids, strict=True)
    }
    moments_ = sample(LocalHost(), [one for (one,) in operators.values()], seconds=0.3)
    stop.set()
    for thread in threads:
        thread.join()
    found = watched(moments_, operators, ())
    assert found.activity["work"].duty.value > found.activity["wait"].duty.value
    assert not found.notes
