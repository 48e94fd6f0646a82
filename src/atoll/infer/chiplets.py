"""Infers chiplets, packages, SMT siblings and levels from core-to-core matrices alone.

The idea of looking for the islands in measured latency and bandwidth is that of olap-on-chiplets
2.3 and 2.4 and of arcas-runtime 2; docs/inference.md describes the method. The steps are:
atoll.infer.matrix (both homes into one), cleaning, smt, levels (candidates from hierarchy, judged
by evidence), classification, confidence. The same matrix always gives the same answer, which may be
that there are no chiplets. An answer whose confidence is under LEAST_CONFIDENCE means that the
figures cannot tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from atoll.infer import classification, confidence
from atoll.infer.agreement import Second, contradiction
from atoll.infer.cleaning import Cleaned, clean
from atoll.infer.confidence import Sureness, noise_bound
from atoll.infer.levels import Bars, Found, find_levels, fold
from atoll.infer.matrix import count_unequal_homes, log_cost
from atoll.infer.smt import smt_pairs
from atoll.schema.profile import Inference, Level
from atoll.schema.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from atoll.infer.hierarchy import Floats, Group

    Counts = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]
    Unit = Literal["latency", "bandwidth"]

# With unlucky noise the halves of a mesh, or two rings of one package, reach 26 %; L3 complexes
# and clusters have 50 % and more (docs/inference.md). In bandwidth the tiles of Sapphire Rapids
# differ by 14 % (olap-on-chiplets 2.4).
_LATENCY_BARS = Bars(first=math.log(1.30), folded=math.log(1.08))
_BANDWIDTH_BARS = Bars(first=math.log(1.06), folded=math.log(1.05))
_LEAST: dict[Unit, float] = {  # of means over many pairs
    "latency": _LATENCY_BARS.folded, "bandwidth": _BANDWIDTH_BARS.folded,
}  # fmt: skip
# What chiplets have at the least: they would have been found if the noise does not hide this step.
_STEPS: dict[Unit, float] = {"latency": math.log(1.5), "bandwidth": math.log(1.14)}
_OWN_LEVEL = 1.5  # times the median of a group of the same level
_OWN_PAIRS = 40  # figures that a separate median needs, so that noise makes no levels


@dataclass(frozen=True)
class _View:
    """The information of one matrix, in indices into the matrix."""

    unit: Unit
    cost: Floats  # as measured, including missing figures
    cleaned: Cleaned
    smt: tuple[Group, ...]
    chiplets: tuple[Group, ...]
    packages: tuple[Group, ...]
    tiers: tuple[tuple[Group, ...], ...]  # all levels above cores, nearest first
    sureness: float
    reasons: tuple[str, ...]
    doubts: tuple[str, ...]


def infer(
    latency_ns: Floats | None,
    bandwidth_gbs: Floats | None,
    pus: Sequence[int] | None = None,
) -> Inference:
    """Infers the islands. The matrices are square, of the same PUs, with NaN where nothing was
    measured; `pus` are the PUs' numbers (default 0, 1, ...)."""
    latency_ns, bandwidth_gbs = _measured(latency_ns), _measured(bandwidth_gbs)
    first = latency_ns if latency_ns is not None else bandwidth_gbs
    if first is None:
        reason = "no pair of PUs was measured, so there is nothing to compare"
        return Inference(
            chiplets=(), packages=(), smt=(), levels=(), confidence=0.0, source="none",
            reasons=(reason,),
        )  # fmt: skip
    numbers = tuple(pus) if pus is not None else tuple(range(len(first)))
    by_latency = None if latency_ns is None else _view(latency_ns, "latency")
    by_bandwidth = None if bandwidth_gbs is None else _view(1 / bandwidth_gbs, "bandwidth")
    return _answer(by_latency, by_bandwidth, numbers)


def _measured(matrix: Floats | None) -> Floats | None:
    """None if it has no figure of a pair."""
    return None if matrix is None or np.all(np.isnan(log_cost(matrix))) else matrix


def _view(matrix: Floats, unit: Unit) -> _View:
    view = _seen(log_cost(matrix), unit)
    unequal = count_unequal_homes(matrix)
    if not unequal:
        return view
    both = int((~np.isnan(matrix + matrix.T)).sum()) // 2
    words = (
        f"the two directions of {plural(unequal, 'pair')} differ by more than half; the nearer one "
        "counts"
    )
    sure = confidence.with_unequal(view.sureness, unequal / both)
    return replace(view, sureness=sure, doubts=(*view.doubts, words))


def _seen(cost: Floats, unit: Unit) -> _View:
    in_ns = unit == "latency"
    bars = _LATENCY_BARS if in_ns else _BANDWIDTH_BARS
    cleaned = clean(cost)
    smt = tuple(smt_pairs(cleaned.cost, in_ns=in_ns))
    paired = {pu for pair in smt for pu in pair}
    cores: list[Group] = [*smt, *((pu,) for pu in range(len(cost)) if pu not in paired)]
    units = cores
    levels = find_levels(fold(cleaned.cost, units), bars)
    tiers = [
        tuple(sorted(tuple(sorted(pu for c in i.members for pu in units[c])) for i in tier))
        for tier in levels.tiers
    ]
    if not smt and tiers and in_ns and classification.is_wide_smt(_step(cost, tiers, 0, cores)):
        smt, tiers = tiers[0], tiers[1:]
        cores = [*smt, *_alone(smt, len(cost))]
        levels = Found(levels.tiers[1:], 0.0)
    if not tiers:
        sure = _none_within(cleaned.cost, cores, unit, levels.nearly)
        return _View(unit, cost, cleaned, smt, (), (), (), sure.value, (), sure.doubts)
    islands = [
        (_inside(cores, {pu for c in island.members for pu in units[c]}), island.evidence)
        for island in levels.tiers[0]
    ]
    sure = confidence.of_groups(fold(cleaned.cost, cores), islands, bars.first)
    step = _step(cost, tiers, 0, cores)
    others = sum(not any(set(core) <= set(g) for g in tiers[0]) for core in cores)
    whole = classification.completed(tiers[0], range(len(cost)))
    odds = classification.package_odds(step, 0 if whole else others, in_ns=in_ns)
    value = sure.value / (1 + math.exp(-abs(odds)))
    reasons = (_by_prior(odds),)
    if odds > 0:
        tiers[0] = whole or tiers[0]
        # Packages, and no chiplets in them: that is only as sure as these would have shown.
        none = min(
            _none_within(cleaned.cost, [cores[i] for i in _inside(cores, set(package))], unit)
            for package in tiers[0]
        )
        return _View(
            unit, cost, cleaned, smt, (), tiers[0], tuple(tiers), value * none.value, reasons,
            (*sure.doubts, *none.doubts),
        )  # fmt: skip
    packages = _packages_above(cost, tiers, cores, step, in_ns=in_ns)
    return _View(
        unit, cost, cleaned, smt, tiers[0], packages, tuple(tiers), value, reasons, sure.doubts
    )


def _packages_above(
    cost: Floats,
    tiers: list[tuple[Group, ...]],
    cores: Sequence[Group],
    chiplets: classification.Step,
    *,
    in_ns: bool,
) -> tuple[Group, ...]:
    """The packages that hold the chiplets of the first tier; their tier gets what completes it."""
    for index in range(len(tiers) - 1, 0, -1):
        whole = classification.completed(tiers[index], range(len(cost)))
        if whole is None:
            continue
        upper = _step(cost, tiers[: index + 1], index, cores)
        if classification.are_packages_above(upper, chiplets, in_ns=in_ns):
            tiers[index] = whole
            return whole
    return ()


def _none_within(cost: Floats, cores: Sequence[Group], unit: Unit, nearly: float = 0.0) -> Sureness:
    """How sure it is that there are no groups among these cores."""
    noise = noise_bound(fold(cost, cores))
    return confidence.of_none(len(cores), noise, _STEPS[unit], nearly)


def _inside(cores: Sequence[Group], pus: set[int]) -> Group:
    """The indices of the cores among these PUs."""
    return tuple(index for index, core in enumerate(cores) if set(core) <= pus)


def _alone(groups: Iterable[Group], size: int) -> list[Group]:
    inside = {pu for group in groups for pu in group}
    return [(pu,) for pu in range(size) if pu not in inside]


def _step(
    cost: Floats, tiers: Sequence[tuple[Group, ...]], index: int, cores: Sequence[Group]
) -> classification.Step:
    level = _level_of_pairs(tiers, len(cost))
    within = _median(cost, level == index)
    across = _median(cost, level == index + 1)
    if math.isnan(across):
        across = _median(cost, level > index)
    held = tuple(sum(core[0] in group for core in cores) for group in map(set, tiers[index]))
    return classification.Step(tiers[index], held, within, across)


def _level_of_pairs(tiers: Sequence[tuple[Group, ...]], size: int) -> Counts:
    """The index of the nearest tier with both PUs in one group; the number of tiers if none has."""
    level = np.full((size, size), len(tiers), dtype=np.int64)
    for index in range(len(tiers) - 1, -1, -1):
        for group in tiers[index]:
            level[np.ix_(group, group)] = index
    np.fill_diagonal(level, -1)
    return level


def _median(cost: Floats, mask: Mask) -> float:
    chosen = cost[mask]
    chosen = chosen[~np.isnan(chosen)]
    return float(np.exp(np.median(chosen))) if len(chosen) else math.nan


def _by_prior(odds: float) -> str:
    name = "packages" if odds > 0 else "chiplets"
    sure = "clearly" if abs(odds) > 3 else "probably" if abs(odds) > 1 else "perhaps"
    return f"by size, latency inside and the step across they are {sure} {name}"


def _answer(latency: _View | None, bandwidth: _View | None, numbers: Sequence[int]) -> Inference:
    main = latency or bandwidth
    assert main is not None
    source: Literal["latency", "bandwidth", "both", "none"] = "none"
    chiplets, shown, sure = main.chiplets, main, main.sureness
    if chiplets:
        source = main.unit
    contradictions: tuple[str, ...] = ()
    if latency and bandwidth:
        inner = _within(bandwidth.chiplets, latency)
        other = bandwidth
        if chiplets and set(inner) == set(chiplets):
            source = "both"
            sure = confidence.agreeing(latency.sureness, bandwidth.sureness)
        elif not chiplets and inner:
            source, chiplets, sure = "bandwidth", inner, bandwidth.sureness
            shown = _View(
                "bandwidth", bandwidth.cost, bandwidth.cleaned, main.smt, chiplets,
                main.packages, (chiplets, *([main.packages] if main.packages else [])), sure, (),
                bandwidth.doubts,
            )  # fmt: skip
            other = latency
        elif not chiplets and not bandwidth.chiplets and main.packages == bandwidth.packages:
            sure = confidence.agreeing(latency.sureness, bandwidth.sureness)
        found = contradiction(
            chiplets or main.packages,
            Second(
                other.unit, other.cleaned.cost, other.chiplets, other.sureness, _LEAST[other.unit]
            ),
            cores=main.smt,
            packages=main.packages if chiplets else (),
        )
        sure = confidence.against(sure, found.value)
        contradictions = found.doubts

    def named(groups: Iterable[Group]) -> tuple[Group, ...]:
        return tuple(sorted(tuple(sorted(numbers[pu] for pu in group)) for group in groups))

    levels = _levels(shown, main.smt)
    return Inference(
        chiplets=named(chiplets),
        packages=named(main.packages),
        smt=named(main.smt),
        levels=tuple(Level(median=median, groups=named(groups)) for median, groups in levels),
        confidence=round(min(max(sure, 0.0), 1.0), 3),
        source=source,
        reasons=(*contradictions, *_reasons(main, shown, chiplets, source)),
    )


def _within(chiplets: tuple[Group, ...], latency: _View) -> tuple[Group, ...]:
    """Groups that bandwidth shows, as far as they fit those that latency shows."""
    packages = [set(package) for package in latency.packages]
    threads = {frozenset(core) for core in latency.smt}
    for chiplet in chiplets:
        members = set(chiplet)
        if members in packages or frozenset(members) in threads:
            return ()
        if packages and not any(members < package for package in packages):
            return ()
    return chiplets


def _levels(view: _View, smt: tuple[Group, ...]) -> list[tuple[float, tuple[Group, ...]]]:
    size = len(view.cost)
    tiers = [tier for tier in (smt, *view.tiers) if tier]
    everyone = tuple(range(size))
    if (everyone,) not in tiers:
        tiers.append((everyone,))
    level = _level_of_pairs(tiers, size)
    result: list[tuple[float, tuple[Group, ...]]] = []
    for index, groups in enumerate(tiers):
        mask = level == index
        split = (
            groups != smt
            and min(int(mask[np.ix_(group, group)].sum()) for group in groups) >= _OWN_PAIRS
        )
        parts = (
            _by_median(view.cost, mask, groups) if split else [(_median(view.cost, mask), groups)]
        )
        result.extend(part for part in parts if not math.isnan(part[0]))
    # By cost, since a socket that is far from its own lines is farther away than the other socket.
    result.sort(key=lambda part: part[0])
    return [
        (float(f"{cost if view.unit == 'latency' else 1 / cost:.4g}"), groups)
        for cost, groups in result
    ]


def _by_median(
    cost: Floats, mask: Mask, groups: tuple[Group, ...]
) -> list[tuple[float, tuple[Group, ...]]]:
    """Makes separate levels of groups of one tier whose medians differ by half. On a machine that
    homes every line in one socket, the other socket's pairs are as slow as those across sockets."""
    alone = []
    for group in groups:
        inside = np.ix_(group, group)
        median = _median(cost[inside], mask[inside])
        if not math.isnan(median):
            alone.append((median, group))
    alone.sort()
    parts: list[list[tuple[float, Group]]] = []
    for item in alone:
        if parts and item[0] < _OWN_LEVEL * parts[-1][0][0]:
            parts[-1].append(item)
        else:
            parts.append([item])
    result = []
    for part in parts:
        chosen = tuple(sorted(group for _, group in part))
        of_part = np.zeros_like(mask)
        for group in chosen:
            of_part[np.ix_(group, group)] = True
        result.append((_median(cost, mask & of_part), chosen))
    return result


def _reasons(
    main: _View, shown: _View, chiplets: tuple[Group, ...], source: str
) -> tuple[str, ...]:
    reasons = []
    if main.smt:
        reasons.append(f"SMT siblings in {plural(len(main.smt), 'core')}, by far the closest pairs")
    if chiplets:
        sizes = sorted({len(group) for group in chiplets})
        range_ = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        reasons.append(f"islands in {source}: {plural(len(chiplets), 'group')} of {range_} PUs")
    elif main.packages:
        reasons.append("inside the packages no group stands apart from the neighbouring cores")
    else:
        reasons.append("no group stands apart from the neighbouring cores")
    if main.packages:
        reasons.append(plural(len(main.packages), "package"))
    reasons += [*shown.reasons, *shown.doubts]
    cleaned = main.cleaned
    if cleaned.filled:
        reasons.append(
            f"filled in {plural(cleaned.filled, 'pair')} without a figure from similar pairs"
        )
    if cleaned.disturbed:
        reasons.append(
            f"corrected {plural(cleaned.disturbed, 'pair')} far slower than similar pairs"
        )
    if cleaned.slow:
        reasons.append(
            f"used only the pattern of {plural(len(cleaned.slow), 'PU')} slower to all others"
        )
    return tuple(reasons)
