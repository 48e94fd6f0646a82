"""The order of deployments and of queries. Pure.

A block contains every entrant once. The order is reversed from block to block (ABBA), so a drift
of the machine that is linear over two neighbouring blocks favours no entrant. Streams follow the
throughput test of TPC-H: each stream runs all queries and starts at a different one, so that the
streams seldom run the same query at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence


def in_block(labels: Sequence[str], block: int) -> list[tuple[int, str]]:
    """(position, label) of the entrants of a block, in running order."""
    return list(enumerate(labels if block % 2 == 0 else reversed(labels)))


def stream_orders(queries: Sequence[str], streams: int) -> list[list[str]]:
    """The queries of each stream in order: rotations, spread evenly over the streams."""
    count = len(queries)
    starts = [stream * count // streams for stream in range(streams)]
    return [[*queries[start:], *queries[:start]] for start in starts]
