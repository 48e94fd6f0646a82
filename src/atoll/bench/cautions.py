"""Warnings that a reader needs before believing a figure. Pure.

Like hyperfine's warnings, each says what is wrong and what to do about it. The codes are stable;
docs/bench.md lists them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeVar

from atoll.bench.axes import DECIDES, differing_axes
from atoll.bench.results import Results
from atoll.bench.sameness import coincide
from atoll.schema.results import (
    BlockFailed,
    ClusterLook,
    DeploymentUp,
    PassDone,
    PassFills,
    PassPlaces,
    QueryProfiled,
    QueryTime,
    QueryWork,
    VerifyResult,
)
from atoll.schema.size import MIB
from atoll.schema.summary import Caution, EntrantSummary
from atoll.schema.text import first_of, plural
from atoll.stats.paired import MIN_BLOCKS

# Below this share of idle CPU time before a pass, the machine has other work.
IDLE_ENOUGH = 0.9
# Above this share of cached pages, the start was not cold.
CACHED_AT_MOST = 0.01
MOST_LISTED = 6  # findings in one warning; the results file has all
_PID = re.compile(r"/proc/\d+/")
_L = TypeVar("_L", ClusterLook, PassFills, PassPlaces, VerifyResult)


def cautions(results: Results, entrants: Sequence[EntrantSummary]) -> tuple[Caution, ...]:
    """All warnings, the most serious first."""
    timed = () if results.header.fingerprint.emulated else entrants
    return tuple(
        Caution(code=code, message=message)
        for source in (
            _answers(results),
            _changed(results),
            _unstable(results),
            _left_out(results),
            _failed(results),
            _incomparable(entrants),
            _drift(results),
            _clusters(results),
            _unread(results),
            _unseen(results),
            _unfilled(results),
            _uncounted(results),
            _busy(results),
            _cache(results),
            _few_blocks(timed),
            _outliers(timed),
            _coincide(results),
        )
        for code, message in source
    )


def _answers(results: Results) -> Iterator[tuple[str, str]]:
    for line in results.lines:
        if isinstance(line, QueryTime) and line.answer == "wrong":
            yield (
                "wrong-answer",
                f"{line.label} gave a wrong answer to {line.query} in block {line.block + 1} "
                f"({line.phase}): {line.detail}",
            )


def _changed(results: Results) -> Iterator[tuple[str, str]]:
    """One warning per query and entrant, since an answer may change in many passes."""
    first: dict[tuple[str, str], QueryTime] = {}
    count: Counter[tuple[str, str]] = Counter()
    for line in results.lines:
        if isinstance(line, QueryTime) and line.answer == "changed":
            count[line.label, line.query] += 1
            first.setdefault((line.label, line.query), line)
    for (label, query), line in first.items():
        times = count[label, query]
        yield (
            "answer-changed",
            f"{label}: the answer to {query} differed from the first one {plural(times, 'time')}, "
            f"first in block {line.block + 1} ({line.phase}): {line.detail}; if the data changed, "
            "its times are not comparable",
        )


def _unstable(results: Results) -> Iterator[tuple[str, str]]:
    """Entrants that answered a query differently in two passes of their own."""
    answers: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for line in results.lines:
        if isinstance(line, QueryTime):
            found = answers.setdefault((line.label, line.query), set())
            found.add((line.answer, line.digest))
    for (label, query), found in answers.items():
        if len(found) > 1:
            yield (
                "answer-unstable",
                f"{label} answered {query} differently in two passes of its own, so no policy is "
                "the reason: the query does not determine its answer (a random function, a LIMIT "
                "without an order), the data changes, or the engine is wrong",
            )


def _clusters(results: Results) -> Iterator[tuple[str, str]]:
    for label, looks in _by_entrant(results, ClusterLook):
        drift = list(
            dict.fromkeys(word for look in looks for seen in look.processes for word in seen.drift)
        )
        if drift:
            yield "cluster-drift", f"{label}: {first_of(drift, MOST_LISTED, '; ')}"
        for unknown in dict.fromkeys(look.unknown for look in looks if look.unknown):
            yield "cluster-unseen", f"{label}: {unknown}"


def _unread(results: Results) -> Iterator[tuple[str, str]]:
    """Why is incomplete: one warning per reason, which many queries may share."""
    run, queries = results.queries, dict[tuple[str, str], list[str]]()
    for line in results.lines:
        if isinstance(line, QueryProfiled) and line.unknown and line.query in run:
            queries.setdefault((line.label, line.unknown), []).append(line.query)
    for (label, reason), found in queries.items():
        yield (
            "profile-unread",
            f"{label}: how it runs {first_of(found, MOST_LISTED)} is unknown, so no part of 'why': "
            f"{reason}",
        )


def _unseen(results: Results) -> Iterator[tuple[str, str]]:
    for label, watched in _by_entrant(results, PassPlaces):
        reasons = list(
            dict.fromkeys(
                _PID.sub("/proc/PID/", reason)  # another one in each block
                for line in watched
                for reason in line.places.unknown
            )
        )
        if reasons:
            yield (
                "places-unseen",
                f"{label}: where threads and memory were is not wholly known: "
                f"{first_of(reasons, MOST_LISTED, '; ')}",
            )


def _unfilled(results: Results) -> Iterator[tuple[str, str]]:
    for label, passes in _by_entrant(results, PassFills):
        reasons = list(dict.fromkeys(line.fault for line in passes if line.fault))
        if reasons:
            yield (
                "fills-uncounted",
                f"{label}: simulated fills were not counted in every pass: "
                f"{first_of(reasons, MOST_LISTED, '; ')}",
            )


def _uncounted(results: Results) -> Iterator[tuple[str, str]]:
    """The sums of an engine's counts lack queries that it forgot or never told of."""
    done = {(line.label, line.block) for line in results.lines if isinstance(line, PassDone)}
    asked, told = Counter[str](), Counter[str]()
    for line in results.lines:
        if isinstance(line, QueryWork | QueryTime) and (line.label, line.block) in done:
            told[line.label] += isinstance(line, QueryWork)
            asked[line.label] += isinstance(line, QueryTime) and line.phase == "measured"
    for label, ran in asked.items():
        counted = told[label]
        if 0 < counted < ran:
            yield (
                "work-uncounted",
                f"{label}: the engine told what {counted} of {ran} measured queries used: "
                "its sums lack the others",
            )


def _by_entrant(results: Results, kind: type[_L]) -> Iterator[tuple[str, list[_L]]]:
    """Every label with its lines of one kind."""
    found: dict[str, list[_L]] = {entrant.label: [] for entrant in results.header.entrants}
    for line in results.lines:
        if isinstance(line, kind):
            found[line.label].append(line)
    yield from found.items()


def _left_out(results: Results) -> Iterator[tuple[str, str]]:
    for line in results.left_out:
        yield (
            "query-failed",
            f"{line.query} failed on {line.label} in block {line.block + 1} ({line.phase}) and is "
            f"left out: {line.error}",
        )


def _failed(results: Results) -> Iterator[tuple[str, str]]:
    for line in results.lines:
        if isinstance(line, BlockFailed):
            yield (
                "block-failed",
                f"{line.label} did not finish block {line.block + 1}; this block is left out: "
                f"{line.error}",
            )


def _incomparable(entrants: Sequence[EntrantSummary]) -> Iterator[tuple[str, str]]:
    by_label = {entrant.label: entrant for entrant in entrants}
    for entrant in entrants:
        base = by_label.get(entrant.baseline or "")
        if base is None:
            continue
        varied = differing_axes(base.cells, entrant.cells)
        meant = {setting for axis in varied for setting in DECIDES.get(axis, ())}
        differing = [
            f"{word} {_amount(there)} against {_amount(here)}"
            for word, there, here in (
                ("threads", base.threads, entrant.threads),
                ("heap", base.heap_bytes, entrant.heap_bytes),
                ("shuffle partitions", base.shuffle_partitions, entrant.shuffle_partitions),
                ("streams", base.streams, entrant.streams),
                ("malloc", base.malloc, entrant.malloc),
                ("transparent huge pages", base.thp, entrant.thp),
            )
            if there != here and word not in meant
        ]
        if differing:
            yield (
                "not-comparable",
                f"{entrant.label} and {base.label} differ in more than placement "
                f"({'; '.join(differing)}): the speed-up is not due to placement alone",
            )


def _drift(results: Results) -> Iterator[tuple[str, str]]:
    for label, verified in _by_entrant(results, VerifyResult):
        drifted = [line for line in verified if line.drifted]
        if drifted:
            worst = max(drifted, key=lambda line: line.drifted)
            what = (
                f"up to {worst.drifted} of {worst.threads} threads were not where the plan put them"
                if worst.threads
                else "no thread was left"
            )
            yield "drift", f"{label}: {what} ({worst.detail})"


def _busy(results: Results) -> Iterator[tuple[str, str]]:
    ups = [line for line in results.lines if isinstance(line, DeploymentUp)]
    busy = [line.idle_share for line in ups if line.idle_share < IDLE_ENOUGH]
    if busy:
        yield (
            "busy-machine",
            f"the machine was busy with other work before {len(busy)} of {len(ups)} passes (as "
            f"little as {min(busy):.0%} idle): stop other work and measure again, or add blocks",
        )


def _cache(results: Results) -> Iterator[tuple[str, str]]:
    own = {entrant.label for entrant in results.header.entrants if entrant.plan}
    ups = [line for line in results.lines if isinstance(line, DeploymentUp) and line.label in own]
    kept = [line for line in ups if line.cached_share is None or line.cached_share > CACHED_AT_MOST]
    if kept:
        known = [line.cached_share for line in kept if line.cached_share is not None]
        much = f"up to {max(known):.0%} stayed" if known else "the system did not report how much"
        yield (
            "page-cache",
            f"before {len(kept)} of {len(ups)} deployments the data stayed in the page cache "
            f"({much}): memory may be where an earlier deployment put it; close programs "
            "that map the data, and do not keep it on tmpfs",
        )


def _few_blocks(entrants: Sequence[EntrantSummary]) -> Iterator[tuple[str, str]]:
    fewest = min(entrants, key=lambda entrant: entrant.blocks_done, default=None)
    if fewest and fewest.blocks_done < MIN_BLOCKS:
        yield (
            "few-blocks",
            f"{fewest.label} has finished only {plural(fewest.blocks_done, 'block')}; an interval "
            f"needs at least {MIN_BLOCKS} blocks",
        )


def _outliers(entrants: Sequence[EntrantSummary]) -> Iterator[tuple[str, str]]:
    found = [
        f"{entrant.label} {times.query} (block "
        + ", ".join(str(block + 1) for block in times.outlier_blocks)
        + ")"
        for entrant in entrants
        for times in entrant.times
        if times.outlier_blocks
    ]
    if found:
        yield (
            "outliers",
            f"outliers, marked and kept: {first_of(found, MOST_LISTED)}; other work disturbed the "
            "machine at that time",
        )


def _coincide(results: Results) -> Iterator[tuple[str, str]]:
    entrants = results.header.entrants
    for position, entrant in enumerate(entrants):
        for other in entrants[position + 1 :]:
            if coincide(entrant, other, results.header.machine):
                yield (
                    "coincide",
                    f"{entrant.label} and {other.label} are the same deployment on this machine: "
                    "a difference between them is noise",
                )


def _amount(value: int | str | None) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return value
    # Not rounded to one digit: two heaps that differ must not look alike.
    return f"{value / MIB:.0f} MiB" if value >= MIB else str(value)
