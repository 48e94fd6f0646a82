"""Who runs when: the order of deployments and of queries. Pure.

A block holds every entrant once. The order is reversed from block to block (ABBA), so that a
drift of the machine that is linear over two neighbouring blocks favours nobody. Streams follow
the throughput test of TPC-H: each runs all queries, every stream starting at another one, so
that no two of them ask the same question at the same time more than they must.
"""

from __future__ import annotations

from collections.abc import Sequence


def schedule(labels: Sequence[str], blocks: int, first: int = 0) -> list[tuple[int, int, str]]:
    """(block, position, label) of `blocks` blocks from number `first` on, in running order."""
    return [
        (block, position, label)
        for block in range(first, first + blocks)
        for position, label in enumerate(labels if block % 2 == 0 else reversed(labels))
    ]


def stream_orders(queries: Sequence[str], streams: int) -> list[list[str]]:
    """Per stream its queries in order: a rotation, spread evenly over the streams."""
    count = len(queries)
    starts = [stream * count // streams for stream in range(streams)]
    return [[*queries[start:], *queries[:start]] for start in starts]


def another_block_fits(spent_s: Sequence[float], left_s: float) -> bool:
    """Whether one more block is sure enough to end in time, going by the blocks so far.

    The longer of the last two is the estimate: one of either order, and the first of all, which
    found nothing in the caches, soon no longer counts. The first block always fits.
    """
    return not spent_s or max(spent_s[-2:]) <= left_s
