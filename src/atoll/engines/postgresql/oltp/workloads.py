"""The workloads and their sizes. Pure, but for reading the files of this package."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from atoll.engines.transactions import Condition
from atoll.errors import UsageError

_FOLDER = Path(__file__).parent
_CONDITION = re.compile(r"^-- (\w+): (.*)\n((?:.+\n)+)", re.MULTILINE)
_ITEMS, _CUSTOMERS, _NAMES = 100_000, 3_000, 1_000  # TPC-C 1.2.1, 4.3.2.3
_ZIPF = 0.99  # YCSB's constant
_WAREHOUSE_BYTES = 100 << 20  # measured
_RECORD_BYTES = 1200  # measured, with its index


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload at one size."""

    name: str
    size: int
    weights: Mapping[str, int]  # type of transaction -> its share, in percent
    scripts: Mapping[str, str]  # of pgbench, by type
    variables: Mapping[str, float]  # of the scripts
    schema: tuple[str, ...]  # statements before the rows
    rows: tuple[tuple[str, ...], ...]  # statements of sessions that may run at one time
    finish: tuple[str, ...]  # statements after the rows
    conditions: tuple[Condition, ...]
    counted: tuple[str, str]
    database_bytes: int


def tpcc(warehouses: int, *, shrink: int = 1) -> Workload:
    """`shrink`: divides items and customers, for tests. It must divide both."""
    items, customers = _ITEMS // shrink, _CUSTOMERS // shrink
    weights = {"new_order": 45, "payment": 43, "order_status": 4, "delivery": 4, "stock_level": 4}
    calls = (f"call load_warehouse({{}}, {items}, {customers})", f"call load_items({items})")
    sessions = [calls[0].format(warehouse + 1) for warehouse in range(warehouses)]
    return Workload(
        name="tpcc",
        size=warehouses,
        weights=weights,
        scripts={name: _text(f"scripts/tpcc_{name}.pgbench") for name in weights},
        variables={
            "warehouses": warehouses,
            "items": items,
            "customers": customers,
            "names": min(customers, _NAMES),
        },
        schema=(
            _text("tpcc_tables.sql"),
            _text("tpcc_transactions.sql"),
            "select setseed(0)",  # of the letters
            _text("tpcc_data.sql"),
        ),
        rows=tuple(
            (f"select setseed({(number + 1) / (len(sessions) + 2)})", call)
            for number, call in enumerate((*sessions, calls[1]))
        ),
        finish=(_text("tpcc_keys.sql"), "drop table letters"),
        conditions=_conditions("tpcc"),
        counted=(
            "payment",
            f"select count(*) - {10 * customers * warehouses} from history",
        ),
        database_bytes=(20 << 20) // shrink + warehouses * (_WAREHOUSE_BYTES // shrink),
    )


def ycsb(records: int, *, zipf: bool) -> Workload:
    """Cooper and others: a read or a change of a record, whose key is uniform or Zipf."""
    keys = _text(f"scripts/keys_{'zipf' if zipf else 'uniform'}.pgbench")
    weights = {"read": 45, "change": 55}
    part = -(-records // 8)
    fields = ", ".join(
        f"'0000000000' || left(repeat(md5(key || ' {field}'), 3), 90)" for field in range(10)
    )
    versions = " + ".join(f"left(field{field}, 10)::bigint" for field in range(10))
    return Workload(
        name="ycsb-zipf" if zipf else "ycsb",
        size=records,
        weights=weights,
        scripts={name: keys + _text(f"scripts/ycsb_{name}.pgbench") for name in weights},
        variables={"records": records, **(zipf_constants(records) if zipf else {})},
        schema=(_text("ycsb.sql"),),
        rows=tuple(
            (
                f"insert into usertable select key, {fields} "
                f"from generate_series({first}, {min(first + part, records) - 1}) as key",
            )
            for first in range(0, records, part)
        ),
        finish=(
            "alter table usertable set logged",
            "alter table usertable add primary key (ycsb_key)",
        ),
        conditions=_conditions("ycsb", records=records),
        counted=("change", f"select sum({versions}) from usertable"),
        database_bytes=records * _RECORD_BYTES,
    )


def zipf_constants(records: int) -> dict[str, float]:
    """Of Gray and others, Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994, whose
    generator YCSB has. pgbench's random_zipfian only takes exponents above 1.

    The record of rank r (from 1) is drawn with a chance of about 1 / (zeta * r^0.99).
    """
    zeta, second = _zeta(records), 1 + 0.5**_ZIPF
    return {
        "zeta": zeta,
        "second": second,
        "alpha": 1 / (1 - _ZIPF),
        # Only ranks from 3 on depend on it.
        "eta": (1 - (2 / records) ** (1 - _ZIPF)) / (1 - second / zeta) if records > 2 else 0.0,
    }


def _zeta(count: int) -> float:
    """The sum of 1 / r^0.99 for r from 1 to `count`: exact for 1,000, then by the integral (the
    Euler-Maclaurin formula; its next term is below 1e-7)."""
    exact = min(count, 1000)
    power = 1 - _ZIPF
    integral = (math.pow(count, power) - math.pow(exact, power)) / power
    ends = (math.pow(count, -_ZIPF) - math.pow(exact, -_ZIPF)) / 2
    return math.fsum(math.pow(rank, -_ZIPF) for rank in range(1, exact + 1)) + integral + ends


WORKLOADS = ("tpcc", "ycsb", "ycsb-zipf")


def workload(name: str, size: int) -> Workload:
    """Raises UsageError."""
    if size < 1:
        raise UsageError(f"{name}: {size} is no size; give 1 warehouse or record, or more")
    if name == "tpcc":
        return tpcc(size)
    if size < 2:
        raise UsageError(f"{name}: a table of 1 record has no distribution; give 2 or more")
    return ycsb(size, zipf=name == "ycsb-zipf")


def _conditions(name: str, **values: int) -> tuple[Condition, ...]:
    found = _CONDITION.findall(_text(f"{name}_conditions.sql"))
    return tuple(
        Condition(name, means, sql.strip().removesuffix(";").format(**values))
        for name, means, sql in found
    )


@cache
def _text(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")
