"""Heat maps: cells, order of PUs, size of the file."""

from __future__ import annotations

import base64
import re
import zlib

import numpy as np

from atoll.infer.relations import arrange, ordered, relations
from atoll.report.profile.heat_colours import STEPS
from atoll.report.profile.pictures import chapters, profile_svg
from atoll.schema.profile import Inference
from tests.parts import profiles
from tests.parts.profiles import MADE


def pixels(svg: str) -> np.ndarray:
    """The first map's colours, by index."""
    data = base64.b64decode(re.findall(r"base64,([^\"]+)", svg)[0])
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    start = data.index(b"IDAT")
    length = int.from_bytes(data[start - 4 : start], "big")
    rows = zlib.decompress(data[start + 4 : start + 4 + length])
    return np.frombuffer(rows, np.uint8).reshape(height, width + 1)[:, 1:]


def test_cells_show_measured_blank_and_unsettled() -> None:
    values = np.array([[0, 10, 100], [10, 0, np.nan], [100, 50, 0]], dtype=float)
    matrix = profiles.pair_matrix(values, unsettled=((0, 1),))
    one = profiles.profile("three", 3, core_latency_cas_ns=matrix)
    side = 16
    cells = pixels(str(profile_svg(one))).reshape(3, side, 3, side).swapaxes(1, 2)
    assert (cells[[0, 1, 2], [0, 1, 2]] == 0).all() and (cells[1, 2] == 0).all()
    assert len(np.unique(cells[0, 1])) == 2 and len(np.unique(cells[1, 0])) == 1
    near, far = cells[1, 0, 0, 0], cells[0, 2, 0, 0]
    assert 0 < near < cells[2, 1, 0, 0] < far, "a longer latency is a brighter colour"


def test_flat_machine_looks_flat_and_tiles_do_not() -> None:
    flat = str(profile_svg(MADE["graviton"]))
    assert np.ptp(pixels(flat)[pixels(flat) > 0].astype(int)) < STEPS * 0.75
    bandwidth = [c.body for c in chapters(MADE["sapphire rapids"])[0].pictures][-1]
    image = pixels(bandwidth)
    cell = image.shape[0] // 56
    inside, across = image[: 14 * cell, : 14 * cell], image[: 14 * cell, 14 * cell :]
    assert np.median(inside) < STEPS / 3 < np.median(across)


def test_pus_are_ordered_by_groups() -> None:
    groups = ((0, 2, 4, 6), (1, 3, 5, 7))
    smt = ((0, 4), (1, 5), (2, 6), (3, 7))
    inference = Inference(chiplets=groups, packages=(), smt=smt, levels=(), confidence=1,
                          source="latency")  # fmt: skip
    arrangement = arrange(inference, range(8))
    assert arrangement.pus == (0, 4, 2, 6, 1, 5, 3, 7)
    assert [(one.start, one.stop) for one in arrangement.chiplets] == [(0, 4), (4, 8)]
    assert arrangement.names == ("SMT siblings", "within a chiplet", "across chiplets")
    assert arrangement.relation[0].tolist() == [-1, 0, 1, 1, 2, 2, 2, 2]
    matrix = profiles.pair_matrix(np.arange(64, dtype=float).reshape(8, 8))
    values, _ = ordered(matrix, arrangement)
    assert arrange(None, (3, 1, 2)).pus == (1, 2, 3)
    assert values[0, 1] == 4 and values[1, 0] == 32
    assert sum(len(one.values) for one in relations(matrix, inference)) == 56


def test_384_pus_stay_a_reasonable_file() -> None:
    count = 384
    matrix = profiles.pair_matrix(profiles.noisy(np.full((count, count), 100.0), 0.1, 1))
    one = profiles.profile("large", count, core_latency_cas_ns=matrix)
    assert len(str(profile_svg(one))) < 400_000
