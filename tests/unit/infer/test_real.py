"""Matrices of real machines, if ATOLL_C2C names a folder that has them (docs/inference.md).

They are not part of this project. Each is judged as measured and under 10 % noise.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from atoll.infer.chiplets import infer
from atoll.infer.matrix import parse_matrix
from tests.parts import infer as parts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FOLDER = os.environ.get("ATOLL_C2C", "")

pytestmark = pytest.mark.skipif(
    not FOLDER, reason="ATOLL_C2C names no folder with matrices of real machines"
)
SEEDS = [None, *range(int(os.environ.get("ATOLL_C2C_SEEDS", "2")))]


def measured(name: str, seed: int | None) -> npt.NDArray[np.float64]:
    values = parse_matrix((Path(FOLDER) / name).read_text(), where=name)
    if seed is None:
        return values
    return parts.noisy(values, 0.1, seed, form="uniform" if seed % 2 else "normal")


@pytest.mark.parametrize("seed", SEEDS)
def test_epyc_has_twelve_l3_groups_in_two_packages(seed: int | None) -> None:
    found = infer(measured("epyc-7r13-x2.csv", seed), None)
    groups = [(*range(8 * i, 8 * i + 8), *range(96 + 8 * i, 104 + 8 * i)) for i in range(12)]
    assert found.chiplets == tuple(groups)
    assert found.packages == (
        (*range(48), *range(96, 144)),
        (*range(48, 96), *range(144, 192)),
    )
    assert found.smt == tuple((i, i + 96) for i in range(96))


@pytest.mark.parametrize("seed", SEEDS)
def test_ryzen_has_two_ccds(seed: int | None) -> None:
    found = infer(measured("ryzen-7950x.csv", seed), None)
    assert found.chiplets == (tuple(range(16)), tuple(range(16, 32)))
    assert found.packages == ()
    assert found.smt == tuple((i, i + 1) for i in range(0, 32, 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_xeon_has_packages_only(seed: int | None) -> None:
    found = infer(measured("xeon-8375c-x2.csv", seed), None)
    assert found.chiplets == ()
    assert found.packages == (
        (*range(32), *range(64, 96)),
        (*range(32, 64), *range(96, 128)),
    )
    assert found.smt == tuple((i, i + 64) for i in range(64))


@pytest.mark.parametrize("seed", SEEDS)
def test_graviton3_has_nothing(seed: int | None) -> None:
    found = infer(measured("graviton3.csv", seed), None)
    assert (found.chiplets, found.packages, found.smt) == ((), (), ())
