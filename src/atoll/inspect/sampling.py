"""Estimates where a process's pages are from a random sample of addresses. Pure except `look`.

The method is stratified random sampling with the combined ratio estimator (Cochran, "Sampling
Techniques", 3rd ed. 1977, chapters 5A and 6.11). A stratum is a mapping or a part of one. Small
strata are examined completely. In a stratum of N pages, m addresses are drawn, one at random from
each of m equal parts, so that neither a regular layout nor an interleave policy can coincide with
them. Address space is mostly empty, so rounds of drawing continue until the shares by node are
known well enough.

With y = pages found on a node and x = pages found at all, a node's share is R = sum(N/m y) /
sum(N/m x), and its error is 1.96 sqrt(V), where

    V = 1 / X^2 * sum over strata of N^2 (1 - m/N) s^2 / m,    X = sum(N/m x),

and s^2 is the variance of y - R x in a stratum. The error is slightly too large, since the parts
are narrower than the stratum. Pages that the sample missed may still exist, so no error is below
3/n of the sampled share (n pages found; the rule of three). The same process gives the same
addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Look = Callable[[npt.NDArray[np.uint64]], npt.NDArray[np.int32]]

# move_pages takes 50 to 100 ns per address: about 5 ms per round, 60 ms for all rounds.
ROUND_PROBES = 65_536
WHOLE_PROBES = 65_536  # for mappings that are examined completely
MOST_PROBES = 786_432
LEAST_IN_MAPPING = 16  # fewer, but at least 2, if there are many mappings
ENOUGH_ERROR = 0.01
Z_95 = 1.96


@dataclass(frozen=True, slots=True)
class Sample:
    """The pages found, by mapping (row) and node (column)."""

    nodes: tuple[int, ...]
    pages: Floats  # estimated pages; exact in rows examined completely
    whole: npt.NDArray[np.bool_]  # rows that were examined completely
    probes: int
    found: int  # probes that hit a page
    share_error: float
    # The pages that were found, and how many pages each stands for.
    addresses: npt.NDArray[np.uint64]
    weights: Floats
    rows: Ints


def take_sample(starts: Ints, sizes_pages: Ints, page_bytes: int, look: Look) -> Sample:
    """`look` returns the node of each address, negative if there is no page."""
    whole = _whole(sizes_pages)
    draws = np.where(whole, sizes_pages, _allocate(np.where(whole, 0, sizes_pages)))
    rows, addresses = _addresses(starts, sizes_pages, draws, page_bytes, seed=0)
    seen = look(addresses)
    total_draws = draws.copy()
    round_draws = np.where(whole, 0, draws)
    probes = len(addresses)
    parts = [_there(rows, addresses, seen)]
    while True:
        sample = _estimate(sizes_pages, whole, total_draws, parts, probes)
        if (
            sample.share_error <= ENOUGH_ERROR
            or not round_draws.any()
            or probes + int(round_draws.sum()) > MOST_PROBES
        ):
            return sample
        rows, addresses = _addresses(starts, sizes_pages, round_draws, page_bytes, seed=len(parts))
        parts.append(_there(rows, addresses, look(addresses)))
        total_draws += round_draws
        probes += len(addresses)


def _whole(sizes: Ints) -> npt.NDArray[np.bool_]:
    """The smallest mappings, as many as WHOLE_PROBES allow."""
    order = np.argsort(sizes, kind="stable")
    whole = np.zeros(len(sizes), dtype=bool)
    whole[order] = np.cumsum(sizes[order]) <= WHOLE_PROBES
    return whole


def _allocate(sizes: Ints) -> Ints:
    """Draws per mapping in a round, in proportion to its size; none if the size is 0."""
    total = int(sizes.sum())
    if total == 0:
        return np.zeros_like(sizes)
    fair = np.floor(sizes * (ROUND_PROBES / total)).astype(np.int64)
    affordable = ROUND_PROBES // int(np.count_nonzero(sizes))
    least = max(2, min(LEAST_IN_MAPPING, affordable))  # a single draw would have no variance
    return np.where(sizes > 0, np.minimum(np.maximum(fair, least), sizes), 0)


def _addresses(
    starts: Ints, sizes: Ints, draws: Ints, page_bytes: int, *, seed: int
) -> tuple[Ints, npt.NDArray[np.uint64]]:
    """One random page from each of `draws` equal parts of each mapping, and its row."""
    rows = np.repeat(np.arange(len(draws)), draws)
    part = np.arange(len(rows)) - np.repeat(np.cumsum(draws) - draws, draws)
    size, count = sizes[rows], draws[rows]
    first = part * size // count
    width = (part + 1) * size // count - first
    offset = (_noise(len(rows), seed) % width.astype(np.uint64)).astype(np.int64)
    return rows, (starts[rows] + (first + offset) * page_bytes).astype(np.uint64)


def _noise(count: int, seed: int) -> npt.NDArray[np.uint64]:
    """splitmix64 (Steele, Lea and Flood, OOPSLA 2014); importing numpy.random costs 20 ms."""
    state = np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)
    mixed = state * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _there(
    rows: Ints, addresses: npt.NDArray[np.uint64], seen: npt.NDArray[np.int32]
) -> tuple[Ints, npt.NDArray[np.uint64], Ints]:
    """Rows, addresses and nodes of the pages that were found."""
    there = seen >= 0
    return rows[there], addresses[there], seen[there].astype(np.int64)


def _estimate(
    sizes: Ints,
    whole: npt.NDArray[np.bool_],
    draws: Ints,
    parts: list[tuple[Ints, npt.NDArray[np.uint64], Ints]],
    probes: int,
) -> Sample:
    rows = np.concatenate([part[0] for part in parts])
    addresses = np.concatenate([part[1] for part in parts])
    nodes, column = np.unique(np.concatenate([part[2] for part in parts]), return_inverse=True)
    hits = np.zeros((len(sizes), len(nodes)))
    np.add.at(hits, (rows, column), 1)
    weight = np.divide(sizes, draws, out=np.zeros(len(sizes)), where=draws > 0)
    pages = hits * weight[:, None]
    return Sample(
        nodes=tuple(int(node) for node in nodes),
        pages=pages,
        whole=whole,
        probes=probes,
        found=len(rows),
        share_error=_share_error(sizes, whole, draws, hits, pages),
        addresses=addresses,
        weights=weight[rows],
        rows=rows,
    )


def _share_error(
    sizes: Ints, whole: npt.NDArray[np.bool_], draws: Ints, hits: Floats, pages: Floats
) -> float:
    sampled = ~whole & (draws > 0)
    if not sampled.any():
        return 0.0
    total = float(pages.sum())
    found = float(hits[sampled].sum())
    if found == 0:
        return 1.0  # nothing is known of the sampled mappings
    m, size = draws[sampled].astype(float), sizes[sampled].astype(float)
    y = hits[sampled]
    x = y.sum(axis=1, keepdims=True)
    share = pages.sum(axis=0) / total
    # e = y - R x is 1 - R on the node, -R on another, 0 if there is no page.
    squares = y * (1 - share) ** 2 + (x - y) * share**2
    sums = y - share * x
    variance = (squares - sums**2 / m[:, None]) / np.maximum(m - 1, 1)[:, None]
    scale = size**2 * np.maximum(1 - m / size, 0) / m
    errors = Z_95 * np.sqrt((scale[:, None] * variance).sum(axis=0)) / total
    unseen = 3 / found * float(pages[sampled].sum()) / total
    return min(1.0, max(float(errors.max()), unseen))
