"""How JCC-H's data is made: the same bytes by any number of threads, at any scale factor, and whole
or not at all."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import DiskFull, UsageError
from atoll.host.local import LocalHost
from atoll.store.files import sha256
from atoll.store.paths import cache_dir
from atoll.suites import jcch_data
from atoll.suites.base import DataSet
from atoll.suites.jcch_shape import (
    LARGEST_SCALE_FACTOR,
    POPULOUS_CUSTOMERS_PPM,
    Permutation,
    Shape,
    gaps,
    large,
)
from tests.parts.faults import fails


@pytest.mark.parametrize("scale_factor", [0.001, 0.05])
def test_the_bytes_do_not_depend_on_the_number_of_threads(
    tmp_path: Path, scale_factor: float
) -> None:
    found = []
    for threads in (1, 3):
        folder = tmp_path / str(threads)
        folder.mkdir()
        jcch_data.write_tables(scale_factor, folder, threads=threads)
        found.append({path.name: sha256(path) for path in folder.iterdir()})
    assert found[0] == found[1]
    assert set(found[0]) == {f"{table}.parquet" for table in jcch_data.TABLES}


@given(st.integers(10, 10**10))
def test_a_permutation_loses_nothing(size: int) -> None:
    table = Permutation(size)
    assert table.size * table.factor < 2**63
    for key in (1, 2, size // 2, size):
        number = table.number(key)
        assert 0 <= number < size
        assert table.key(number) == key
    assert math.gcd(table.factor, size) == 1


@given(st.floats(0.001, LARGEST_SCALE_FACTOR))
def test_a_shape_has_room_for_what_is_populous(scale_factor: float) -> None:
    shape = Shape(scale_factor)
    assert shape.parts.size > 20
    assert 1 <= shape.suppliers_of_populous_order <= shape.large_suppliers
    assert shape.large_suppliers < shape.suppliers_fifth
    assert shape.customers_fifth % 3 == 0
    assert shape.lines_of_populous_order < 2**31, "l_linenumber is an integer"
    for table in (shape.parts, shape.customers, shape.suppliers):
        assert 2 * table.size * table.inverse < 2**63
    for number in range(5):
        assert shape.orders.number(shape.orders.key(number)) == number
    assert shape.rows == pytest.approx(8_660_000 * scale_factor, rel=0.1, abs=200)


@given(st.integers(1, 60), st.data())
def test_gaps_and_what_is_between_them_are_all(size: int, data: st.DataObject) -> None:
    taken = data.draw(st.sets(st.integers(0, size - 1), max_size=8))
    runs = gaps(size, [*taken])
    assert len(runs) == len(taken) + 1
    places = [place for start, end in runs for place in range(start, end)]
    assert sorted([*places, *taken]) == list(range(size))


def test_the_paper_has_nine_tenths_of_a_region_in_its_large_nation() -> None:
    assert (large(2_000), large(2)) == (1_800, 1)
    assert POPULOUS_CUSTOMERS_PPM == 359_104


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def ensure(scale_factor: float = 0.001) -> DataSet:
    return jcch_data.ensure_data(scale_factor, host=LocalHost(), progress=lambda what, part: None)


def test_the_same_data_is_found_and_made_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ensure()
    assert ensure() == first
    assert {path.name for path in first.root.iterdir()} == {*jcch_data.TABLES, "manifest.json"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "another"))
    assert ensure().checksum == first.checksum


def test_a_disk_that_fills_up_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'echo half > "$1/orders.parquet"; echo "IO Error: No space left on device" >&2; exit 1'
    monkeypatch.setattr(
        jcch_data, "generator_argv", lambda sf, folder: ["/bin/sh", "-c", script, "", str(folder)]
    )
    with pytest.raises(DiskFull) as caught:
        ensure()
    assert str(cache_dir("jcch")) in str(caught.value) and "\n" not in str(caught.value)
    assert [path.suffix for path in cache_dir("jcch").iterdir()] == [".lock"]


def test_a_disk_that_fills_up_in_the_generator_is_told(cache: Path) -> None:
    """The file system is real; the limit is of the process."""
    argv = jcch_data.generator_argv(0.01, cache)
    done = LocalHost().run(
        ["/bin/sh", "-c", 'ulimit -f 64; trap "" XFSZ; exec "$@"', "", *argv], timeout_s=60
    )
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("scale_factor", [0.0009, 7_001, float("nan"), -1])
def test_other_scale_factors_are_refused(cache: Path, scale_factor: float) -> None:
    with fails(UsageError, asked=f"{scale_factor:g}", least="0.001", most="7000"):
        ensure(scale_factor)
