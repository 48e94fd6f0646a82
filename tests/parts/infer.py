"""Machines made up from published medians, for the inference to find.

Medians: EPYC, Ryzen and Xeon as in olap-on-chiplets 2.3 and in published core-to-core
measurements; none is a copy of a measured matrix. `gradients` have no groups at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Made:
    name: str
    values: Floats
    chiplets: Groups = ()
    packages: Groups = ()
    smt: Groups = ()


def of_labels(labels: npt.NDArray[np.int64]) -> Groups:
    """Groups of two and more with the same label."""
    groups = [tuple(int(i) for i in np.flatnonzero(labels == k)) for k in np.unique(labels)]
    return tuple(sorted(group for group in groups if len(group) > 1))


def islands(
    name: str,
    cores: list[list[int]],
    *,
    smt: int = 1,
    ns: tuple[float, float, float] = (22.0, 105.0, 200.0),
    smt_ns: float = 8.0,
    quadrant: int = 0,
    quadrant_ns: float = 85.0,
    numbering: str = "blocks",
    seed: int = 0,
) -> Made:
    """`cores[p]` are the sizes of the chiplets of package p, in cores; ns: within a chiplet,
    within a package, across. `quadrant`: number of chiplets on a quarter of the I/O die."""
    package, chiplet, quarter, core = [], [], [], []
    count = 0
    for p, sizes in enumerate(cores):
        for c, size in enumerate(sizes):
            for k in range(size):
                package.append(p)
                chiplet.append(count)
                quarter.append(p * 100 + (c // quadrant if quadrant else c))
                core.append((count, k))
            count += 1
    ids = np.arange(len(core))
    order = np.tile(ids, smt)
    if numbering == "adjacent":
        order = np.repeat(ids, smt)
    elif numbering == "random":
        order = np.random.default_rng(seed).permutation(order)
    of_package, of_chiplet = np.array(package)[order], np.array(chiplet)[order]
    of_quarter = np.array(quarter)[order]
    values = np.full((len(order), len(order)), float(ns[2]))
    values[of_package[:, None] == of_package[None]] = ns[1]
    if quadrant:
        values[of_quarter[:, None] == of_quarter[None]] = quadrant_ns
    values[of_chiplet[:, None] == of_chiplet[None]] = ns[0]
    values[order[:, None] == order[None]] = smt_ns
    np.fill_diagonal(values, np.nan)
    lone_package = len(cores) == 1
    lone_chiplets = all(len(sizes) == 1 for sizes in cores)
    return Made(
        name,
        values,
        () if lone_chiplets else _of_cores(of_chiplet, order),
        () if lone_package else of_labels(of_package),
        of_labels(order) if smt > 1 else (),
    )


def _of_cores(labels: npt.NDArray[np.int64], order: npt.NDArray[np.int64]) -> Groups:
    """As of_labels, without chiplets of one core."""
    return tuple(g for g in of_labels(labels) if len({int(order[i]) for i in g}) > 1)


def machines() -> list[Made]:
    """With groups; the smallest contrast is that of dies with their own mesh."""
    made = [
        islands("2 CCD of 8, SMT", [[8, 8]], smt=2, ns=(17, 82, 0), smt_ns=6),
        islands("2 CCD of 6, SMT adjacent", [[6, 6]], smt=2, ns=(19, 80, 0), numbering="adjacent"),
        islands("2 CCX of 4, SMT", [[4, 4]], smt=2, ns=(24, 95, 0), numbering="adjacent"),
        islands("8 CCX of 3, SMT", [[3] * 8], smt=2, ns=(20, 80, 0)),
        islands("4 CCX of 4, near", [[4] * 4], smt=2, ns=(30, 72, 0), numbering="adjacent"),
        islands("4 CCX of 4 on 2 dies", [[4] * 4], smt=2, ns=(38, 190, 0), quadrant=2),
        islands("2 CCX of 4, slow", [[4] * 2], smt=2, ns=(40, 130, 0), smt_ns=13),
        islands("sub-NUMA halves, far apart", [[13, 15]], smt=2, ns=(45, 70, 0)),
        islands("8 CCD of 8", [[8] * 8], ns=(24, 106, 0)),
        islands("2 x 16 CCX of 4", [[4] * 16] * 2, ns=(24, 110, 220), quadrant=4, quadrant_ns=92),
        islands("12 CCD of 8, quadrants of 3", [[8] * 12], smt=2, ns=(25, 120, 0), quadrant=3),
        islands("2 x 8 CCD, 7 cores left", [[7] * 8] * 2, smt=2, ns=(24, 106, 190)),
        islands("unequal CCD", [[8, 6, 8, 4, 7, 6, 8, 3]], smt=2, ns=(23, 105, 0)),
        islands("unequal, random", [[8, 6, 5, 4], [8, 7, 3, 6]], smt=2, numbering="random"),
        islands("6 CCD, quadrants of 2, 2 and 2", [[6] * 6] * 2, quadrant=2, ns=(22, 110, 200)),
        islands("5 CCD, quadrants of 2, 2 and 1", [[8] * 5], quadrant=2, ns=(22, 115, 0)),
        islands("clusters of 4, 4 and 2", [[4, 4, 2]], ns=(40, 140, 0)),
        islands("clusters of 4 and 4", [[4, 4]], ns=(45, 130, 0)),
        islands("clusters of 8 and 4", [[8, 4]], ns=(38, 140, 0)),
        islands("8 clusters of 4", [[4] * 8], ns=(38, 60, 0)),
        islands("2 x 4 clusters of 4, dies", [[4] * 8] * 2, ns=(40, 65, 300)),
        islands("two sockets of 8 on rings", [[8]] * 2, smt=2, ns=(33, 100, 105)),
        islands("two sockets of 10 on rings", [[10]] * 2, smt=2, ns=(40, 100, 110)),
        islands("two sockets of 24 on meshes", [[24]] * 2, smt=2, ns=(48, 100, 110)),
        islands("two sockets of 56", [[56]] * 2, smt=1, ns=(60, 130, 130)),
        islands("two sockets of 96, no SMT", [[96]] * 2, ns=(55, 160, 160)),
        islands("four sockets of 18", [[18]] * 4, smt=2, ns=(50, 120, 120), numbering="random"),
        islands("SMT8, 2 x 8 cores", [[8]] * 2, smt=8, ns=(60, 200, 200), smt_ns=9),
        islands("SMT4, 2 x 8 cores", [[8]] * 2, smt=4, ns=(50, 180, 180), smt_ns=9),
        islands("8 cores, SMT", [[8]], smt=2, ns=(21, 0, 0), smt_ns=6),
        islands("4 cores, SMT", [[4]], smt=2, ns=(27, 0, 0), smt_ns=7),
        islands("4 cores", [[4]], ns=(21, 0, 0)),
    ]
    made.append(hybrid())
    made.append(far_home())
    return made


def hybrid() -> Made:
    """8 cores with SMT and 8 slower without: cost = a_i + a_j, so no groups but the threads."""
    core = np.array([c for c in range(8) for _ in range(2)] + list(range(8, 16)))
    slow = np.where(core < 8, 17.5, 23.0)
    values = slow[:, None] + slow[None]
    values[core[:, None] == core[None]] = 5.0
    np.fill_diagonal(values, np.nan)
    return Made("8 fast cores with SMT and 8 slow", values, (), (), of_labels(core))


def far_home() -> Made:
    """Two sockets of 6 L3 groups, every line homed in socket 0: socket 1 sees itself as far."""
    made = islands("lines homed in socket 0", [[8] * 6] * 2, smt=2, ns=(22.7, 107.6, 197))
    values = made.values.copy()
    second = np.array(made.packages[1])
    inner = values[np.ix_(second, second)]
    values[np.ix_(second, second)] = np.where(inner == 107.6, 200.5, inner)
    return Made(made.name, values, made.chiplets, made.packages, made.smt)


def gradients() -> list[Made]:
    """Latency that only rises with the way: no cut through it is an island."""
    made = []
    for rows, columns in ((8, 8), (4, 16), (6, 6), (10, 13), (4, 4), (2, 8), (5, 7)):
        for base, hop in ((35.0, 1.5), (40.0, 3.0), (25.0, 4.0)):
            place = np.array([(r, c) for r in range(rows) for c in range(columns)])
            way = np.abs(place[:, None] - place[None]).sum(axis=2)
            made.append(Made(f"mesh {rows} x {columns}, {base} + {hop}", _blank(base + hop * way)))
    for count in (6, 8, 10, 18, 24, 28):
        for base, hop in ((20.0, 0.8), (22.0, 1.5), (30.0, 2.0)):
            k = np.arange(count)
            way = np.abs(k[:, None] - k[None])
            ring = np.minimum(way, count - way)
            made.append(Made(f"ring of {count}, {base} + {hop}", _blank(base + hop * ring)))
            made.append(Made(f"line of {count}, {base} + {hop}", _blank(base + hop * way)))
    made += [two_rings(count, bridge) for count in (14, 22) for bridge in (0.0, 8.0)]
    for count in (16, 64):
        near = np.sort(np.random.default_rng(count).uniform(15, 28, count))[::-1]
        made.append(Made(f"slow and fast cores, {count}", _blank(near[:, None] + near[None])))
        far = np.maximum(near[:, None], near[None]) * 2
        made.append(Made(f"the slower of two, {count}", _blank(far)))
    flat = [(count, np.full((count, count), 46.0)) for count in (2, 3, 4, 6, 8, 16, 64)]
    return made + [Made(f"flat, {count}", _blank(values)) for count, values in flat]


def two_rings(count: int, bridge: float) -> Made:
    """One package of two rings (Xeon E5): across, the way leads over a bridge at one end."""
    half = count // 2
    k = np.arange(count)
    ring, place = k // half, k % half
    apart = np.abs(place[:, None] - place[None])
    own = np.minimum(apart, half - apart)
    over = place[:, None] + place[None]
    over = np.minimum(over, 2 * half - over) / 2
    way = np.where(ring[:, None] == ring[None], own, over) / (half / 2)
    values = 40 + 15 * way + np.where(ring[:, None] == ring[None], 0, bridge)
    return Made(f"two rings of {half}, bridge of {bridge} ns", _blank(values))


def tiles(
    sizes: tuple[int, ...] = (14, 14, 14, 14), ns: float = 59.0
) -> tuple[Floats, Floats, Groups]:
    """Latency, bandwidth and tiles of olap-on-chiplets 2.4: 12.5 GB/s inside, 11 and at the
    farthest 10.5 across; latency is the same everywhere."""
    label = np.repeat(np.arange(len(sizes)), sizes)
    apart = np.abs(label[:, None] - label[None])
    bandwidth = np.where(apart == 0, 12.5, np.where(apart == 2, 10.5, 11.0))
    return _blank(np.full(bandwidth.shape, ns)), _blank(bandwidth), of_labels(label)


def _blank(values: Floats) -> Floats:
    values = values.astype(np.float64)
    np.fill_diagonal(values, np.nan)
    return values


def noisy(values: Floats, sigma: float, seed: int, *, form: str = "normal") -> Floats:
    """Independent multiplicative noise for each entry; `uniform`: within ± sigma."""
    random = np.random.default_rng(seed)
    if form == "uniform":
        return values * random.uniform(1 - sigma, 1 + sigma, values.shape)
    return values * np.maximum(1 + sigma * random.standard_normal(values.shape), 0.5)


def lower(values: Floats) -> Floats:
    """The lower triangle alone."""
    return np.where(np.tri(len(values), k=-1, dtype=bool), values, np.nan)
