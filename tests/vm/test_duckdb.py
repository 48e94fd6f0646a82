"""DuckDB on Atoll's workers over eight chiplets: they are where the spread says, and so is who
calls; the spread moves 1 -> 8 -> 1 by policy, by hand and by itself while queries run; a mask that
shrinks is followed; every answer is right.

The judge has the kernel's words on masks and CPUs (tests/vm/inside/duckdb.py) and the topology file
that the machine was built from. On a chiplet there are as many cores as there are chiplets, so that
eight workers fit on one and reach all.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import duckdb
import pytest

from atoll.engines.api import Column, QueryResult
from atoll.guest.guest import Guest
from atoll.guest.seen import cpu_list
from atoll.schema.cpulist import format_cpulist
from atoll.suites.compare import compare
from tests.parts.answers import TPCH, data_at
from tests.vm import expected
from tests.vm.landing import Layout
from tests.vm.proof import ROOT

WIDE = str(Path(__file__).parent / "wide.toml")
WORKERS = 8
SCALE_FACTOR = 0.01
ROWS_IN_A_GROUP = 2048  # so that of lineitem there is work for all, at this scale factor
PATIENCE_S = 900.0

Order = dict[str, Any]
POLICIES: list[tuple[Order, int]] = [
    ({}, 1),  # opened with the policy local
    ({"policy": "distributed"}, 8),
    ({"policy": "local"}, 1),
]
BY_HAND: list[tuple[Order, int]] = [({"spread": spread}, spread) for spread in (2, 4, 8, 4, 2, 1)]
# Long, and with little memory: it fits in one chiplet's L3 (32 MiB). A new text runs as wide as can
# be, since nothing is known of it; from then on where its memory fits.
LONG = "select sum(l_quantity * factor) from lineitem, range({}) factors(factor)"
BY_ITSELF: list[tuple[Order, int]] = [
    ({"run": LONG.format(times), **policy}, spread)
    for times, policy in ((60, {"policy": "adaptive"}), (61, {}))
    for spread in (8, 1)
]
# What may be used from then on: two chiplets of different packages, halves of two neighbours, all.
# They are set in the middle of a long query. The caller gets its own mask back at the end of one,
# and a mask that is set from outside in just that moment is lost: user space cannot swap masks.
LIMITS: list[tuple[Order, int]] = [
    ({"policy": "distributed"}, 8),
    *(
        ({"limit": limit, "during": LONG.format(70)}, spread)
        for limit, spread in (("8-15,32-39", 2), ("4-11", 2), ("0-63", 8))
    ),
]


def prepare(folder: Path) -> dict[str, str]:
    """TPC-H as one file, the queries' texts, and where the answers go."""
    files = {name: str(folder / name) for name in ("database", "queries", "answers")}
    with duckdb.connect() as connection:
        connection.execute(f"attach '{files['database']}' as d (row_group_size {ROWS_IN_A_GROUP})")
        for table, path in data_at(SCALE_FACTOR).files.items():
            connection.execute(f"create table d.{table} as from read_parquet('{path}')")
    Path(files["queries"]).write_text(json.dumps(dict(TPCH.queries("duckdb"))))
    return files


def judge(layout: Layout, limit: Collection[int], spread: int, look: dict[str, Any]) -> str:
    """What is wrong with where they are: all on as many chiplets as they should, equally many."""
    chiplets = {chiplet & set(limit) for chiplet in layout.chiplets}
    masks = {name: cpu_list(mask) for name, (mask, _) in look.items()}
    workers = {f"atoll-duck-{rank}" for rank in range(1, WORKERS)}
    if set(look) != {"caller", *workers}:
        return f"threads {sorted(look)}"
    if not set(masks.values()) <= chiplets:
        return f"masks {look}"
    if any(cpu not in masks[name] for name, (_, cpu) in look.items()):
        return f"CPUs {look}"
    crowd = Counter(masks.values())
    if len(crowd) != spread or set(crowd.values()) != {WORKERS // spread}:
        return f"on {len(crowd)} chiplets: {look}"
    return ""


def masks_of_workers(looks: list[dict[str, Any]]) -> set[str]:
    return {
        json.dumps({name: mask for name, (mask, _) in look.items() if name != "caller"})
        for look in looks
    }


@pytest.mark.long
@pytest.mark.parametrize("guest", [WIDE], indirect=True, ids=["wide"])
def test_workers_are_where_the_spread_says_and_answers_are_right(guest: Guest) -> None:
    layout = expected.layout(guest.topology)
    positions = [*POLICIES, *BY_HAND, *BY_ITSELF, *LIMITS]
    files = prepare(guest.share)
    found = asked(guest, layout, positions, files)
    assert found["begins"] == {"spread": 1, "chiplets": 8}
    may_use = frozenset(layout.cpus)
    for number, ((order, spread), seen) in enumerate(zip(positions, found["seen"], strict=True)):
        where = (number, order, spread)
        looks, reply = seen["looks"], seen["reply"]
        if "limit" in order:
            may_use = cpu_list(order["limit"])
        faults = [judge(layout, may_use, spread, look) for look in looks]
        if "run" in order:
            assert "" in faults, (where, faults[-1:])
            query = reply["query"]
            assert (query["spread"], query["failed"]) == (spread, False), (where, query)
            assert reply["rows"] == plainly(files, order["run"]), where
        else:
            assert faults[-1] == "", (where, faults[-1])
            assert reply["spread"] == spread, where
            assert reply["runs"] > 0, where
            if "limit" in order:
                assert reply["rows"] == plainly(files, order["during"]), where
            else:
                assert seen["told"]["spread"] == spread, where
                # They are bound before the first query begins, and stay where they are.
                assert len(masks_of_workers(looks)) == 1, (where, looks)
        # Who called has its own mask again.
        assert cpu_list(seen["after"]["caller"][0]) == may_use, (where, seen["after"])
    judge_answers(files)
    judge_inspection(*found["inspected"])


def asked(
    guest: Guest, layout: Layout, positions: list[tuple[Order, int]], files: dict[str, str]
) -> dict[str, Any]:
    task, answer = guest.share / "task", guest.share / "answer"
    wanted = {
        "orders": [{**order, "wanted": spread} for order, spread in positions],
        "chiplets": [format_cpulist(chiplet) for chiplet in layout.chiplets],
        **files,
    }
    task.write_text(json.dumps(wanted))
    argv = [sys.executable, "-m", "tests.vm.inside.duckdb", "watch", str(task), str(answer)]
    done = guest.run(argv, timeout_s=PATIENCE_S, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    found = json.loads(answer.read_text())
    assert found["status"] == 0
    assert isinstance(found, dict)
    return found


def plainly(files: dict[str, str], sql: str) -> list[list[str]]:
    with duckdb.connect(files["database"], read_only=True) as connection:
        return [[str(value) for value in row] for row in connection.execute(sql).fetchall()]


def judge_answers(files: dict[str, str]) -> None:
    """All that the queries of TPC-H ever answered, in all positions."""
    data = data_at(SCALE_FACTOR)
    given = pickle.loads(Path(files["answers"]).read_bytes())
    assert set(given) == set(TPCH.query_names)
    for name, results in given.items():
        assert results, name
        for columns, rows in results:
            result = QueryResult(tuple(Column(*column) for column in columns), rows, 0.0)
            assert compare(result, TPCH.expected(name, data)) is None, name


def judge_inspection(status: int, out: str, err: str) -> None:
    """`atoll inspect` at the end, while they wait: one on each chiplet."""
    assert status == 0, (out, err)
    (found,) = json.loads(out)
    assert found["expected"]["cpus"] == "0-63"
    assert found["findings"] == []
    assert found["spread"] == {
        "over": "chiplet",
        "usable": 8,
        "threads_on": {str(chiplet): 1 for chiplet in range(8)},
        "threads_named": {"atoll-duck": 7, "atoll-seat": 1},  # the seat is the caller's
    }
