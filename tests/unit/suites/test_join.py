"""The join: keys that are unique and uniform, the same bytes every time, and its two queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.errors import UsageError
from atoll.host.local import LocalHost
from atoll.suites import cached, join_data, reference, registry
from atoll.suites.base import DataSet
from tests.parts.faults import fails

SCALE_FACTOR = 0.001


def ensure(scale_factor: float = SCALE_FACTOR) -> DataSet:
    return registry.get("join").ensure_data(
        scale_factor, host=LocalHost(), progress=lambda what, part: None
    )


def test_keys_are_unique_on_one_side_and_uniform_on_the_other() -> None:
    files = ensure().files
    _, small = reference.run(
        "select count(*), count(distinct join_key), min(join_key), max(join_key) from join_small",
        files,
    )
    assert small == [(65_000, 65_000, 0, 64_999)]
    _, ((rows, low, high),) = reference.run(
        "select count(*), min(join_key), max(join_key) from join_large", files
    )
    assert rows == 125_000
    assert low >= 0 and high < 65_000
    # Of keys that are drawn independently, 1/e of the mean number has no row; 125/65 a key.
    _, ((met,),) = reference.run("select count(distinct join_key) from join_large", files)
    assert met / 65_000 == pytest.approx(1 - 2.718281828 ** (-125 / 65), abs=0.005)
    _, tenths = reference.run(
        "select count(*) from join_large group by join_key * 10 // 65000", files
    )
    assert all(count == pytest.approx(12_500, rel=0.05) for (count,) in tenths)


def test_payloads_are_random_and_independent_of_keys() -> None:
    for table in join_data.SCHEMAS:
        _, ((mean, correlated),) = reference.run(
            f"select avg(payload), corr(join_key, payload) from {table}", ensure().files
        )
        assert mean == pytest.approx(2**30, rel=0.01)
        assert abs(correlated) < 0.02


def test_the_same_bytes_are_made_again(tmp_path: Path) -> None:
    join_data.write_tables(SCALE_FACTOR, tmp_path)
    for table, path in ensure().files.items():
        if table in join_data.SCHEMAS:
            assert (tmp_path / f"{table}.parquet").read_bytes() == path.read_bytes()


def test_every_row_of_the_larger_side_has_one_partner() -> None:
    data = ensure()
    answer = registry.get("join").expected("q1", data)
    assert answer.rows[0][0] == 125_000
    _, ((payloads,),) = reference.run("select sum(payload) from join_large", data.files)
    assert answer.rows[0][2] == payloads


def test_every_lineitem_has_one_partsupp() -> None:
    data = ensure(0.01)  # below, TPC-H has too few suppliers for the four of a part to differ
    _, ((lines,),) = reference.run("select count(*) from lineitem", data.files)
    assert registry.get("join").expected("q2", data).rows == [(lines,)]


def test_the_data_sets_of_the_join_and_of_tpch_are_one() -> None:
    data = ensure()
    assert tuple(data.files) == registry.get("join").tables
    assert data.data.name == f"join-sf{cached.exactly(SCALE_FACTOR)}"


def test_keys_that_do_not_fit_are_refused() -> None:
    with fails(UsageError, asked="factor 34 is", most="33"):
        join_data.ensure_data(34, host=LocalHost(), progress=lambda what, part: None)
    with fails(UsageError, query="q3", known="q1, q2"):
        registry.get("join").expected("q3", DataSet("join", 1.0, Path("/"), (), ""))
