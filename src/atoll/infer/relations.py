"""Orders the PUs of a profile by the inferred groups, and classifies pairs of PUs. Pure.

In the kernel's numbering the SMT siblings and the members of a chiplet are often far apart; next to
each other they show as blocks in a picture. Without an inference the kernel's order stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from atoll.schema.profile import Inference, PairMatrix, Profile

Array = npt.NDArray[np.float64]


class Span(NamedTuple):
    """A group in the order: from `start` to before `stop`."""

    number: int
    start: int
    stop: int


class Arrangement(NamedTuple):
    """`relation[i][j]` is an index into `names`, from the nearest to the farthest; -1 on the
    diagonal. Rows and columns follow `pus`."""

    pus: tuple[int, ...]
    chiplets: tuple[Span, ...]
    packages: tuple[Span, ...]
    names: tuple[str, ...]
    relation: npt.NDArray[np.int64]


class Relation(NamedTuple):
    """All pairs of one kind."""

    name: str
    values: Array  # sorted
    unsettled: int

    @property
    def settled(self) -> bool:
        """Whether most of its figures settled, so that their median is trustworthy."""
        return self.unsettled * 2 <= len(self.values)

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.values, share))


def arrange(inference: Inference | None, pus: Sequence[int]) -> Arrangement:
    """Orders `pus` by package, chiplet, core and number."""
    smt, chiplets, packages = (
        (inference.smt, inference.chiplets, inference.packages) if inference else ((), (), ())
    )
    core, island, package = (_member(groups, pus) for groups in (smt, chiplets, packages))
    # A kind without groups does not influence the order.
    ranks = [member for member, there in
             ((package, packages), (island, chiplets), (core, smt)) if there]  # fmt: skip
    order = sorted(pus, key=lambda pu: (*(member[pu] for member in ranks), pu))
    columns = [np.array([member[pu] for pu in order]) for member in (core, island, package)]
    same = [np.equal.outer(column, column) for column in columns]
    names = [
        name
        for name, there in (
            ("SMT siblings", smt),
            ("within a chiplet", chiplets),
            ("across chiplets" if chiplets else "within a package", chiplets or packages),
            ("across packages", packages),
        )
        if there
    ] or ["all pairs"]
    if smt and len(names) == 1:
        names.append("other cores")
    relation = np.full((len(order), len(order)), len(names) - 1)
    nearer = [grid for grid, there in zip(same[::-1], (packages, chiplets, smt), strict=True)
              if there]  # fmt: skip
    for step, grid in enumerate(nearer):
        relation[grid] = len(names) - 2 - step
    np.fill_diagonal(relation, -1)
    return Arrangement(
        pus=tuple(order),
        chiplets=_spans([island[pu] for pu in order], len(chiplets)),
        packages=_spans([package[pu] for pu in order], len(packages)),
        names=tuple(names),
        relation=relation,
    )


def ordered(matrix: PairMatrix, found: Arrangement) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The matrix in the order of `found`, and which of its figures did not settle."""
    place = {pu: index for index, pu in enumerate(matrix.pus)}
    rows = [place[pu] for pu in found.pus]
    values = matrix.array()[np.ix_(rows, rows)] if rows else np.empty((0, 0))
    values[np.eye(len(rows), dtype=bool)] = np.nan
    unsettled = np.zeros(values.shape, dtype=bool)
    here = {pu: index for index, pu in enumerate(found.pus)}
    for first, second in matrix.unsettled:
        unsettled[here[first], here[second]] = True
    return values, unsettled & np.isfinite(values)


def relations(matrix: PairMatrix | None, inference: Inference | None) -> list[Relation]:
    """The figures by the kind of the pair, nearest first; no empty kinds."""
    if matrix is None:
        return []
    arrangement = arrange(inference, matrix.pus)
    values, unsettled = ordered(matrix, arrangement)
    there = np.isfinite(values)
    return [
        Relation(name, np.sort(values[mask]), int(unsettled[mask].sum()))
        for index, name in enumerate(arrangement.names)
        if (mask := there & (arrangement.relation == index)).any()
    ]


def cores(profile: Profile) -> int:
    """The number of cores that were measured: SMT siblings count as one."""
    smt = profile.inference.smt if profile.inference else ()
    measured = set(profile.cpus)
    return len(measured) - sum(max(0, len(measured & set(group)) - 1) for group in smt)


def _member(groups: Sequence[Sequence[int]], pus: Sequence[int]) -> dict[int, int]:
    """The number of each PU's group; a PU without a group gets a number after all groups."""
    group_of = {pu: len(groups) + index for index, pu in enumerate(sorted(pus))}
    ranked = sorted(enumerate(groups), key=lambda one: (min(one[1], default=0), one[0]))
    for rank, (_, group) in enumerate(ranked):
        group_of |= {pu: rank for pu in group if pu in group_of}
    return group_of


def _spans(members: Sequence[int], groups: int) -> tuple[Span, ...]:
    """Runs of PUs of one group; PUs without a group are in no span."""
    edges = [0, *(i for i in range(1, len(members)) if members[i] != members[i - 1]), len(members)]
    return tuple(
        Span(members[start], start, stop)
        for start, stop in pairwise(edges)
        if start < stop and members[start] < groups
    )
