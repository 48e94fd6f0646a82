"""YCSB and TPC-C as data: sizes, scripts, Zipf's constants, pgbench's command and log."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

from atoll.engines.api import Installation
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.engines.postgresql.oltp.pgbench import PgbenchTransactions
from atoll.engines.postgresql.oltp.workloads import (
    WORKLOADS,
    tpcc,
    workload,
    ycsb,
    zipf_constants,
)
from atoll.engines.transactions import TransactionalEngine
from atoll.errors import EngineFailed, UsageError
from tests.parts.faults import fails

ENGINE = PostgreSQLEngine()


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_variable_of_a_script_is_defined(name: str) -> None:
    work = workload(name, 10)
    assert sum(work.weights.values()) == 100
    assert list(work.scripts) == list(work.weights)
    for script in work.scripts.values():
        defined = {*work.variables, "client_id", *re.findall(r"^\\set (\w+)", script, re.MULTILINE)}
        used = set(re.findall(r"(?<!:):([a-z]\w*)", script))
        assert used <= defined


def test_tpcc_has_its_mix_and_twelve_conditions() -> None:
    work = tpcc(50)
    assert list(work.weights.values()) == [45, 43, 4, 4, 4]
    assert [one.name for one in work.conditions] == [str(number) for number in range(1, 13)]
    assert work.variables == {"warehouses": 50, "items": 100_000, "customers": 3000, "names": 1000}
    assert 5e9 < work.database_bytes < 6e9


def test_data_of_another_size_or_recipe_is_another() -> None:
    made = [PgbenchTransactions(ENGINE, one).data for one in (tpcc(1), tpcc(2), tpcc(1, shrink=10))]
    assert len({(one.name, one.checksum) for one in made}) == 3
    uniform, zipf = (PgbenchTransactions(ENGINE, ycsb(9, zipf=one)).data for one in (False, True))
    assert uniform == zipf  # only the keys that are asked for differ


@pytest.mark.parametrize("records", [2, 7, 8, 9, 1000])
def test_the_parts_of_ycsb_are_all_keys_once(records: int) -> None:
    keys: list[int] = []
    for (statement,) in ycsb(records, zipf=False).rows:
        first, last = map(int, re.findall(r"generate_series\((\d+), (\d+)\)", statement)[0])
        keys += range(first, last + 1)
    assert keys == list(range(records))


def draw(records: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Ranks from 0 on, as scripts/keys_zipf.pgbench draws them."""
    found = zipf_constants(records)
    u = np.random.default_rng(3).random(count)
    uz = u * found["zeta"]
    tail = np.rint(records * (found["eta"] * u - found["eta"] + 1) ** found["alpha"] - 0.5)
    ranks = np.where(uz < 1, 0, np.where(uz < found["second"], 1, np.minimum(tail, records - 1)))
    return ranks.astype(np.int64)


def test_zipf_draws_as_ycsb_does() -> None:
    records, count = 10_000, 400_000
    zeta = math.fsum(rank**-0.99 for rank in range(1, records + 1))
    assert zipf_constants(records)["zeta"] == pytest.approx(zeta, rel=1e-6)
    ranks = draw(records, count)
    assert ranks.min() == 0 and ranks.max() == records - 1
    shares = np.bincount(ranks, minlength=records) / count
    assert shares[0] == pytest.approx(1 / zeta, rel=0.02)
    assert shares[1] == pytest.approx(0.5**0.99 / zeta, rel=0.02)
    for most in (10, 100, 1000):  # Gray's generator is an approximation, here by up to 4.5 %
        wanted = math.fsum(rank**-0.99 for rank in range(1, most + 1)) / zeta
        assert shares[:most].sum() == pytest.approx(wanted, rel=0.05)


def test_zipf_of_two_records_draws_both() -> None:
    shares = np.bincount(draw(2, 100_000)) / 100_000
    assert shares.tolist() == pytest.approx(
        [1 / (1 + 0.5**0.99), 1 - 1 / (1 + 0.5**0.99)], rel=0.02
    )


@pytest.mark.parametrize(("name", "size"), [("tpcc", 0), ("ycsb", 0), ("ycsb-zipf", 1)])
def test_a_size_that_is_none(name: str, size: int) -> None:
    with fails(UsageError, name=name):
        workload(name, size)


def test_the_command_names_types_and_weights(tmp_path: Path) -> None:
    (tmp_path / "pgbench").touch(mode=0o700)
    work = PgbenchTransactions(ENGINE, tpcc(2))
    found = work.drive(
        Installation("15.18", str(tmp_path)), "/run/x/.s.PGSQL.5432", clients=3, seconds=9, seed=4
    )
    assert found.argv[:7] == (
        *(f"{tmp_path}/pgbench", "-h", "/run/x", "-p", "5432"),
        *("-U", "atoll"),
    )
    for word in ("--client=3", "--time=9", "--file=new_order@45", "--define=warehouses=2"):
        assert word in found.argv
    assert set(found.files) == set(work.types)
    assert not any(name.startswith("PG") for name in found.env)


def test_a_missing_pgbench_names_the_package(tmp_path: Path) -> None:
    work = PgbenchTransactions(ENGINE, tpcc(1))
    with fails(EngineFailed, folder=str(tmp_path), major="15"):
        work.drive(Installation("15.18", str(tmp_path)), "/x", clients=1, seconds=1, seed=1)


def test_a_log_with_failures_and_a_torn_end() -> None:
    texts = {
        "log.7": "0 1 2500 1 1700000000 500000\n0 2 failed 0 1700000001 0\n0 3 120 1 17000",
        "log.7.1": "1 1 800 0 1700000002 250000\n",
        "payment": "select 1",
    }
    found = PgbenchTransactions(ENGINE, tpcc(1)).read(texts)
    assert found.types.tolist() == [1, 0]
    assert found.latency_ms.tolist() == [2.5, 0.8]
    assert found.ended_s.tolist() == [1700000000.5, 1700000002.25]
    assert found.failed == 1
    assert not len(PgbenchTransactions(ENGINE, tpcc(1)).read({}).types)


def test_it_is_a_transactional_engine() -> None:
    assert isinstance(ENGINE, TransactionalEngine)
    assert os.fspath(ENGINE.kept_in("/x").data_folder) == "/x"
