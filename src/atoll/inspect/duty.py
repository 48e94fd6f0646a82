"""How busy operators are, by the CPU time of their threads. Pure except `look` and `sample`.

The activity that query-plan-deployment-poster needs of each operator: its duty, the CPU seconds a
second over the whole time, and its peak, the 95th percentile over windows of 100 ms. For each pair
of neighbours also the share of windows in which both were busy: operators that never are can share
a core as one unit.

Every look takes one read per thread: 500 threads take about 5 ms. The kernel brings a running
thread's time up to date at its clock tick, so a window of 100 ms is wrong by up to 4 %. Kernels
without schedstat count in steps of 10 ms; then it is up to 10 %. Sums have no such error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from atoll.host.api import Host
from atoll.host.procfs import parse_stat
from atoll.inspect.processes import GONE
from atoll.inspect.tasks import Thread
from atoll.schema.operator_graph import BUSY, Activity, Known, Overlap, Source
from atoll.schema.text import plural
from atoll.stats.tails import percentile

WINDOW_S = 0.1


@dataclass(frozen=True, slots=True)
class Moment:
    """What the threads have used until now."""

    at_s: float  # on the host's monotonic clock
    cpu_s: Mapping[Thread, float]  # since each began; without those that have ended


@dataclass(frozen=True, slots=True)
class Watched:
    """What operators did between the first and the last moment."""

    seconds: float
    activity: Mapping[str, Activity]  # by operator, without those that never had a living thread
    overlaps: tuple[Overlap, ...]
    notes: tuple[str, ...]  # what the figures leave out


def look(host: Host, threads: Iterable[Thread]) -> Moment:
    used = {}
    for thread in threads:
        folder = f"/proc/{thread.pid}/task/{thread.tid}"
        try:
            used[thread] = _cpu_s(host, folder)
        except GONE:
            continue
    return Moment(host.monotonic(), used)


def _cpu_s(host: Host, folder: str) -> float:
    try:
        ns = int(host.read_text(f"{folder}/schedstat").split()[0])
    except FileNotFoundError:  # a kernel without it; else `stat` is missing too
        ns = 0
    # 0: the kernel does not keep these counts now (it was started without `delayacct`).
    return ns / 1e9 if ns else parse_stat(host.read_text(f"{folder}/stat")).cpu_s


def sample(
    host: Host,
    threads: Collection[Thread],
    *,
    seconds: float,
) -> list[Moment]:
    """Looks every 100 ms during these seconds. A late look makes only its own window longer."""
    moments = [look(host, threads)]
    began_s = moments[0].at_s
    while (passed_s := moments[-1].at_s - began_s) < seconds - WINDOW_S / 2:
        windows = int(passed_s / WINDOW_S + 1.5)  # a look may be slightly early
        until_s = min(windows * WINDOW_S, seconds)
        host.sleep(max(began_s + until_s - host.monotonic(), 0.0))
        moments.append(look(host, threads))
    return moments


def watched(
    moments: Sequence[Moment],
    operators: Mapping[str, Collection[Thread]],
    edges: Iterable[tuple[str, str]],
) -> Watched:
    """The activity of operators, each of which has these threads to itself.

    `edges`: givers and takers. Raises ValueError if no time passed. Linear in moments x threads.
    """
    seconds = moments[-1].at_s - moments[0].at_s if moments else 0.0
    if seconds <= 0:
        raise ValueError("two moments at different times are needed")
    windows = [(last.at_s - first.at_s, first, last) for first, last in pairwise(moments)]
    windows = [window for window in windows if window[0] > 0]
    seen = {thread for moment in moments for thread in moment.cpu_s}
    shares = {
        operator: [
            # More than its threads can do in a window is time of the window before.
            min(_used_s(threads, first, last) / length_s, len(threads))
            for length_s, first, last in windows
        ]
        for operator, threads in operators.items()
        if not seen.isdisjoint(threads)
    }
    activity = {}
    for operator, found in shares.items():
        used_s = sum(_used_s(operators[operator], first, last) for _, first, last in windows)
        peak = percentile(found, 95)
        activity[operator] = Activity(
            duty=Known(value=used_s / seconds, source=Source.MEASURED, how="CPU time of threads"),
            peak=peak
            if peak is None
            else Known(
                value=peak,
                source=Source.MEASURED,
                how=f"95th percentile of {len(found)} windows of {WINDOW_S * 1000:.0f} ms",
            ),
        )
    busy = {operator: [share > BUSY for share in found] for operator, found in shares.items()}
    overlaps = (
        Overlap(
            giver=giver,
            taker=taker,
            share=sum(map(min, busy[giver], busy[taker])) / len(windows),
        )
        for giver, taker in edges
        if giver in busy and taker in busy
    )
    ended = len(seen - moments[-1].cpu_s.keys())
    notes = (f"{plural(ended, 'thread')} ended meanwhile; what they did last is not counted",)
    return Watched(seconds, activity, tuple(overlaps), notes if ended else ())


def _used_s(threads: Iterable[Thread], first: Moment, last: Moment) -> float:
    """CPU time in a window. A time that falls is that of a new thread with the same id."""
    return sum(
        max(last.cpu_s[thread] - first.cpu_s[thread], 0.0)
        for thread in threads
        if thread in first.cpu_s and thread in last.cpu_s
    )
