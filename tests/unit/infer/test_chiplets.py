"""The islands of machines made from published medians are found, and none on gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.infer.chiplets import infer
from atoll.schema.profile import Inference
from tests.parts import infer as parts

# The largest take a good part of a second each; the smaller ones show the same rules.
MACHINES = [made for made in parts.machines() if len(made.values) <= 64]
GRADIENTS = [made for made in parts.gradients() if 2 < len(made.values) <= 28]


def assert_found(found: Inference, made: parts.Made) -> None:
    assert found.chiplets == made.chiplets, (made.name, found.reasons)
    assert found.packages == made.packages, (made.name, found.reasons)
    assert found.smt == made.smt, (made.name, found.reasons)


@pytest.mark.parametrize("made", MACHINES, ids=lambda made: made.name)
def test_exact(made: parts.Made) -> None:
    found = infer(made.values, None)
    assert_found(found, made)
    assert found.source == ("latency" if made.chiplets else "none")
    assert found.confidence >= 0.5


@pytest.mark.parametrize("made", MACHINES, ids=lambda made: made.name)
def test_under_ten_percent_noise_in_one_triangle(made: parts.Made) -> None:
    assert_found(infer(parts.lower(parts.noisy(made.values, 0.1, 7)), None), made)


@pytest.mark.parametrize("made", GRADIENTS, ids=lambda made: made.name)
def test_no_cut_through_a_gradient_is_an_island(made: parts.Made) -> None:
    values = [made.values, parts.noisy(made.values, 0.1, 3, form="uniform")]
    for found in (infer(v, None) for v in values):
        assert (found.chiplets, found.packages, found.smt) == ((), (), ())
        assert [level.groups for level in found.levels] == [((*range(len(made.values)),),)]


def test_lines_homed_in_one_socket_still_show_both() -> None:
    made = parts.far_home()
    found = infer(parts.noisy(made.values, 0.1, 1, form="uniform"), None)
    assert_found(found, made)
    inner = [lv.median for lv in found.levels if lv.groups in [(p,) for p in made.packages]]
    assert inner == [pytest.approx(107.6, rel=0.02), pytest.approx(200.5, rel=0.02)]


@pytest.mark.parametrize(("sigma", "form"), [(0.0, "normal"), (0.05, "normal"), (0.05, "uniform")])
@pytest.mark.parametrize("sizes", [(14, 14, 14, 14), (14, 12, 13, 14)])
def test_tiles_that_show_in_bandwidth_alone(
    sizes: tuple[int, ...], sigma: float, form: str
) -> None:
    latency, bandwidth, tiles = parts.tiles(sizes)
    latency = parts.noisy(latency, sigma, 1, form=form)
    bandwidth = parts.noisy(bandwidth, sigma, 2, form=form)
    found = infer(latency, bandwidth)
    assert found.chiplets == tiles
    assert found.source == "bandwidth"
    assert found.packages == found.smt == ()
    assert found.levels[0].median == pytest.approx(12.5, rel=0.01)  # GB/s
    assert infer(latency, None).chiplets == ()
    assert infer(None, bandwidth).chiplets == tiles


def test_bandwidth_that_falls_with_the_way_has_no_tiles() -> None:
    place = np.array([(r, c) for r in range(8) for c in range(8)])
    way = np.abs(place[:, None] - place[None]).sum(axis=2)
    for seed in range(3):
        found = infer(None, parts.noisy(8.6 - 0.1 * way, 0.02, seed))
        assert found.chiplets == found.packages == found.smt == ()


def test_both_matrices_that_agree_make_it_surer() -> None:
    made = parts.islands("", [[8] * 8], ns=(24, 106, 0))
    bandwidth = np.where(made.values < 50, 12.0, 6.0)
    found = infer(made.values, bandwidth)
    assert found.source == "both"
    assert found.chiplets == made.chiplets
    assert found.confidence >= infer(made.values, None).confidence


def test_the_quadrants_of_an_io_die_are_a_level_not_packages() -> None:
    made = parts.islands("", [[8] * 8], quadrant=2, quadrant_ns=85, ns=(23, 120, 0))
    found = infer(parts.noisy(made.values, 0.05, 0), None)
    assert found.packages == ()
    assert [len(level.groups) for level in found.levels] == [8, 4, 1]
    assert [round(lv.median / m, 1) for lv, m in zip(found.levels, (23, 85, 120), strict=True)] == [
        1.0,
        1.0,
        1.0,
    ]


def test_unequal_quadrants() -> None:
    made = parts.islands("", [[8] * 5], quadrant=2, quadrant_ns=85, ns=(23, 120, 0))
    found = infer(parts.noisy(made.values, 0.1, 0), None)
    assert found.chiplets == made.chiplets
    assert sorted(map(len, found.levels[1].groups)) == [16, 16]


def test_holes_and_disturbed_pairs() -> None:
    made = parts.islands("", [[8] * 6], ns=(23, 105, 0))
    values = parts.noisy(made.values, 0.05, 5)
    random = np.random.default_rng(1)
    holes = np.triu(random.random(values.shape) < 0.1)
    values[holes | holes.T] = np.nan
    for i, j in random.integers(0, len(values), (5, 2)):
        values[i, j] = values[j, i] = 10 * values[i, j]
    np.fill_diagonal(values, np.nan)
    found = infer(values, None)
    assert found.chiplets == made.chiplets
    assert any("without a figure" in reason for reason in found.reasons)
    assert any("far slower than similar pairs" in reason for reason in found.reasons)


@pytest.mark.parametrize("times", [1.5, 2.0, 10.0])
def test_a_core_that_was_disturbed_all_along_stays_in_its_group(times: float) -> None:
    made = parts.islands("", [[8] * 6], ns=(23, 105, 0))
    values = parts.noisy(made.values, 0.05, 5)
    values[11] *= times
    values[:, 11] *= times
    found = infer(values, None)
    assert found.chiplets == made.chiplets
    assert any("slower to all others" in reason for reason in found.reasons)


@pytest.mark.parametrize("smt", [1, 2])
@pytest.mark.parametrize("times", [1.5, 2.5])
def test_one_slow_core_of_a_mesh_makes_no_group_of_all_others(times: float, smt: int) -> None:
    made = parts.islands("", [[28]], smt=smt, ns=(55, 0, 0), numbering="adjacent")
    values = parts.noisy(made.values, 0.05, 2)
    slow = [6, 7][:smt]  # a whole core
    values[slow] *= times
    values[:, slow] *= times
    assert_found(infer(values, None), made)


@pytest.mark.parametrize("numbering", ["blocks", "adjacent"])
@pytest.mark.parametrize("lost", [np.nan, 80.0])
def test_siblings_whose_figure_is_lost_follow_the_rule_of_the_others(
    lost: float, numbering: str
) -> None:
    made = parts.islands("", [[4] * 4], smt=2, ns=(26, 100, 0), numbering=numbering)
    values = parts.noisy(made.values, 0.05, 3)
    for i, j in (made.smt[3], made.smt[9]):
        values[i, j] = values[j, i] = lost
    assert_found(infer(values, None), made)


def test_the_rule_of_siblings_ends_where_cores_without_threads_begin() -> None:
    made = parts.hybrid()
    values = parts.lower(parts.noisy(made.values, 0.05, 4))
    values[19, 18] = np.nan
    assert infer(values, None).smt == made.smt


def test_levels_go_from_the_nearest_to_the_farthest() -> None:
    medians = [level.median for level in infer(parts.far_home().values, None).levels]
    assert medians == sorted(medians)


def test_quadrants_of_other_sizes_are_all_kept() -> None:
    quadrant = np.repeat([0, 1, 1, 1, 2, 2, 3, 3, 3, 3], 4)
    made = parts.islands("", [[4] * 10], ns=(23, 110, 0))
    same = quadrant[:, None] == quadrant[None]
    values = np.where(same & (made.values == 110), 92, made.values)
    found = infer(parts.lower(parts.noisy(values, 0.1, 2)), None)
    assert_found(found, made)
    assert [len(group) for group in found.levels[1].groups] == [12, 8, 16]


@pytest.mark.parametrize("size", [0, 1])
def test_nothing_to_compare(size: int) -> None:
    found = infer(np.full((size, size), np.nan), None)
    assert (found.chiplets, found.packages, found.smt, found.levels) == ((), (), (), ())
    assert found.source == "none"


def test_the_numbers_of_the_pus_are_the_callers() -> None:
    made = parts.islands("", [[4, 4, 4]], ns=(22, 95, 0))
    found = infer(made.values, None, pus=[*range(2, 26, 2)])
    assert found.chiplets == ((2, 4, 6, 8), (10, 12, 14, 16), (18, 20, 22, 24))


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(2, 8), min_size=3, max_size=6),
    st.integers(1, 2),
    st.integers(0, 2**16),
)
def test_any_sizes_in_any_numbering(sizes: list[int], smt: int, seed: int) -> None:
    made = parts.islands("", [sizes], smt=smt, ns=(23, 105, 0), numbering="random", seed=seed)
    assert_found(infer(parts.noisy(made.values, 0.05, seed, form="uniform"), None), made)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**16), st.floats(0, 2))
def test_any_matrix_has_an_answer_and_groups_are_disjoint(
    size: int, seed: int, wild: float
) -> None:
    random = np.random.default_rng(seed)
    values = 50 * np.exp(wild * random.standard_normal((size, size)))
    values[random.random((size, size)) < 0.2] = np.nan
    found = infer(values, None)
    for groups in (found.chiplets, found.packages, found.smt):
        members = [pu for group in groups for pu in group]
        assert len(members) == len(set(members))
        assert set(members) <= set(range(size))
    assert 0 <= found.confidence <= 1


def test_the_same_matrix_gives_the_same_answer() -> None:
    values = parts.noisy(parts.islands("", [[6] * 4]).values, 0.1, 0)
    assert infer(values, None) == infer(values.copy(), None)
