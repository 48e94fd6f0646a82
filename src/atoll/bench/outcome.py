"""Whether a finished run is a success, for its exit code. Pure."""

from __future__ import annotations

from atoll.bench.cautions import MOST_LISTED
from atoll.bench.estimates import THROUGHPUT, judged
from atoll.errors import CheckFailed, EngineFailed, UsageError
from atoll.schema.results import RunHeader
from atoll.schema.size import percent
from atoll.schema.summary import BenchSummary
from atoll.schema.text import first_of, plural


def require_pairs(header: RunHeader) -> None:
    """Raises UsageError if nothing could be slower than something else, or nobody could tell."""
    if header.fingerprint.emulated:
        raise UsageError(
            "--fail-if-slower: the CPU is emulated, so times mean nothing; leave it out"
        )
    if not any(entrant.baseline for entrant in header.entrants):
        raise UsageError(
            "--fail-if-slower: there is nothing to compare with; name a second policy or URL"
        )


def require_speed(summary: BenchSummary, ratio: float) -> None:
    """Raises CheckFailed if an entrant is slower than its baseline by more than `ratio` beyond
    doubt: if the whole interval of its geometric mean is (with other streams than the baseline, of
    its throughput). Without an interval there is doubt."""
    for entrant in summary.entrants:
        speedup = judged(entrant.speedups)
        interval = speedup.interval if speedup else None
        if speedup and interval and interval.high * ratio < 1:
            rate = ", by queries per second," if speedup.query == THROUGHPUT else ""
            raise CheckFailed(
                f"{entrant.label} takes{rate} {1 / speedup.value:.2f} times as long as "
                f"{entrant.baseline} ({percent(summary.confidence)} interval "
                f"{1 / interval.high:.2f} to {1 / interval.low:.2f}), and --fail-if-slower "
                f"allows {ratio:g} times"
            )


def require_answers(summary: BenchSummary) -> None:
    """Raises EngineFailed if an entrant finished no block, or if a query failed."""
    without = [entrant.label for entrant in summary.entrants if not entrant.blocks_done]
    if without:
        raise EngineFailed(f"{', '.join(without)} finished no block; see the errors above")
    if failed := [one.query for one in summary.left_out]:
        raise EngineFailed(
            f"{len(failed)} of {plural(len(summary.queries) + len(failed), 'query')} failed and "
            f"{'was' if len(failed) == 1 else 'were'} left out: "
            f"{first_of(failed, MOST_LISTED)}; the rest was measured"
        )
