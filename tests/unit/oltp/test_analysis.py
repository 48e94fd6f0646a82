"""Whether placement matters, from paired blocks; and what a reader is warned of."""

from __future__ import annotations

from atoll.oltp.analysis import cautions, compared
from atoll.report.terminal.oltp import oltp_text
from atoll.stats.equivalence import Equivalence
from tests.parts.machines import milan, plain
from tests.parts.oltp import Rates, oltp_runs

CHIPLETS = milan(1, 8, 8)


def verdict(packed: Rates, spread: Rates) -> Equivalence:
    (found,) = compared(oltp_runs(CHIPLETS, 8, {"tpcc": (packed, spread)}))
    return found.verdict


def test_blocks_are_paired() -> None:
    """The blocks differ by far more than the seats within one."""
    packed = [100.0, 300.0, 150.0, 900.0, 120.0]
    assert verdict(packed, [1.005 * one for one in packed]) is Equivalence.EQUIVALENT
    assert verdict(packed, [0.9 * one for one in packed]) is Equivalence.DIFFERS
    assert verdict(packed, list(reversed(packed))) is Equivalence.NOT_SHOWN


def test_the_ratio_is_spread_over_packed() -> None:
    (found,) = compared(oltp_runs(CHIPLETS, 8, {"tpcc": ([100.0] * 5, [200.0] * 5)}))
    assert found.ratio is not None and found.ratio.value == 2


def test_a_block_without_commits_is_no_pair() -> None:
    assert verdict([100.0] * 5, [100.0] * 4 + [0.0]) is Equivalence.NOT_SHOWN  # 4 pairs


def test_without_any_commit_the_reason_is_that() -> None:
    said = oltp_text(oltp_runs(CHIPLETS, 8, {"tpcc": ([100.0] * 5, [0.0] * 5)}), 80)
    assert "not shown, because no block has commits of both" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80


def test_one_seat_shows_nothing_and_says_why() -> None:
    found = oltp_runs(plain(2), 2, {"tpcc": ([100.0] * 5, [100.0] * 5)})
    assert [one.ratio for one in compared(found)] == [None]
    said = " ".join(oltp_text(found, 80).split())
    assert "not shown, because both are the same cores here" in said
    assert "spread/cores=2 is packed/cores=2 here" in said


def test_cautions() -> None:
    found = oltp_runs(CHIPLETS, 8, {"tpcc": ([100.0] * 3, [100.0] * 3)}, emulated=True)
    bad = {"idle_before": 0.5, "drifted": 1, "drift": "pid 7", "failed": 2, "idle_during": 0.8}
    runs = (found.runs[0].model_copy(update=bad), *found.runs[1:])
    said = "\n".join(cautions(found.model_copy(update={"runs": runs})))
    for part in (
        "emulated",
        "busy before 1 of 6 runs",
        "out of place in 1 of 6 runs: pid 7",
        "2 transactions gave up",
        "idle for 80 % of 1 of 6 runs: commits waited for the disk",
        "3 blocks: fewer than 5",
    ):
        assert part in said
