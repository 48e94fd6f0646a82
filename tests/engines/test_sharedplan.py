"""The shared-plan engine: its answers are DuckDB's on the same tables, and its operators run where
a placement says."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from atoll.engines.sharedplan import PROGRAM, SharedPlan, anywhere
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.host.programs import find_program
from atoll.operators.verify import verify
from atoll.schema.placement import PlacedCore, PlacedNode, PlacedUnit, Placement

# Each statement as SQL. The interactions of TPC-W that use it: queries.cpp.
AUTHOR = "join author on a_id = i_a_id"
FOUND = f"select i_id, i_title, a_fname, a_lname from item {AUTHOR}"
STATEMENTS = {
    "name": "select c_fname, c_lname from customer where c_id = $customer",
    "related": "select j.i_id, j.i_title, j.i_cost from item i join item j on j.i_id in "
    "(i.i_related1, i.i_related2, i.i_related3, i.i_related4, i.i_related5) "
    "where i.i_id = $item order by j.i_id limit 5",
    "new": f"select i_id, i_title, i_pub_date, a_fname, a_lname from item {AUTHOR} "
    "where i_subject = $subject order by i_pub_date desc, i_title, i_id limit 50",
    "best": "select i_id, i_title, sum(ol_qty) as sold, a_fname, a_lname from order_line "
    f"join item on i_id = ol_i_id {AUTHOR} where i_subject = $subject and "
    "ol_o_id > (select max(o_id) - 3333 from orders) "
    "group by i_id, i_title, a_fname, a_lname order by sold desc, i_id limit 50",
    "detail": f"select i_id, i_title, i_cost, i_stock, a_fname, a_lname from item {AUTHOR} "
    "where i_id = $item",
    "title": f"{FOUND} where i_title like '%' || $word || '%' order by i_title, i_id limit 50",
    "subject": f"{FOUND} where i_subject = $subject order by i_title, i_id limit 50",
    "author": f"{FOUND} where a_lname like '%' || $word || '%' order by i_title, i_id limit 50",
    "cart": "select i_id, i_title, i_cost, scl_qty from cart_line join item on i_id = scl_i_id "
    "where scl_sc_id = $cart order by i_id, scl_qty",
    "buyer": "select c_id, c_fname, c_lname, c_discount, addr_city, co_name from customer "
    "join address on addr_id = c_addr_id join country on co_id = addr_co_id "
    "where c_id = $customer",
    "order": "select o_id, o_total, o_status, b.addr_city, s.addr_city, cx_type, cx_amount "
    "from orders join address b on b.addr_id = o_bill_addr_id "
    "join address s on s.addr_id = o_ship_addr_id join cc_xacts on cx_o_id = o_id "
    "where o_c_id = $customer order by o_id desc limit 1",
    "lines": "select i_id, i_title, i_cost, ol_qty from order_line join item on i_id = ol_i_id "
    "where ol_o_id = (select max(o_id) from orders where o_c_id = $customer) "
    "order by i_id, ol_qty",
    "also": "select i_id, i_title, sum(o.ol_qty) as bought from order_line l "
    "join order_line o on o.ol_o_id = l.ol_o_id and o.ol_i_id <> l.ol_i_id "
    "join item on i_id = o.ol_i_id where l.ol_i_id = $item "
    "group by i_id, i_title order by bought desc, i_id limit 5",
}


def program() -> str:
    found = find_program(PROGRAM)
    assert found is not None, "make setup"
    return found


def sharedplan(*flags: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program(), *flags], capture_output=True, text=True, timeout=120, check=False, **more
    )


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    done = sharedplan("--scale", "0.002", "--seed", "7", "--dump", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def answers_of(query: Mapping[str, Any], connection: duckdb.DuckDBPyConnection, name: str) -> Any:
    sql = STATEMENTS[name]
    wanted = {key: query[key] for key in ("customer", "item", "subject", "word", "cart")}
    given = {key: value for key, value in wanted.items() if f"${key}" in sql}
    return [[str(value) for value in row] for row in connection.execute(sql, given).fetchall()]


def test_all_answers_are_those_of_duckdb(dumped: Path) -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        for path in dumped.glob("*.csv"):
            # `NA` and the like are words here.
            connection.execute(
                f"create table {path.stem} as select * from read_csv('{path}', nullstr='none')"
            )
        queries = json.loads((dumped / "answers.json").read_text("utf-8"))
        seen: dict[str, int] = {}
        for query in queries:
            for name, rows in query["answers"].items():
                assert rows == answers_of(query, connection, name), (query["interaction"], name)
                seen[name] = seen.get(name, 0) + (len(rows) > 0)
    assert len({query["interaction"] for query in queries}) == 14
    assert seen.keys() == STATEMENTS.keys() and min(seen.values()) >= 2  # with rows


def packed(operators: Sequence[str], cpu: int) -> Placement:
    """All on one CPU."""
    return Placement(
        deployment="packed",
        headroom=0.2,
        units=(PlacedUnit(operators=tuple(operators), cpu=cpu, duty=0.5, reason="test"),),
        cores=(PlacedCore(cpu=cpu, chiplet=None, node=0, duty=0.5),),
        nodes=(PlacedNode(node=0, cores=1),),
    )


def test_operators_run_where_the_placement_says(tmp_path: Path) -> None:
    host = LocalHost()
    cpus = sorted(host.affinity(os.getpid()))
    small = SharedPlan(("--scale", "0.002", "--browsers", "20"))
    with small.start(host, tmp_path, cpus) as running:
        free = running.threads()
        assert len({one.tid for one in free}) == len(free) == 44
        assert verify(host, free, anywhere(cpus)).faults == ()
        graph = running.profile(1)
        placement = packed([one.id for one in graph.operators], cpus[-1])
        running.place(placement)
        (worker,) = running.threads()
        assert len(worker.operators) == 44
        assert verify(host, [worker], placement).faults == ()
        found = running.measure(2)
        assert len(found.per_window) == 2 and found.p99_ms >= found.p50_ms > 0
    assert not host.exists(f"/proc/{worker.pid}")
    busy = {one.id for one in graph.operators if one.activity and one.activity.duty.value > 0}
    assert len(busy) == 44 and len(graph.edges) == len(graph.overlaps) == 42
    carried = {(one.giver, one.taker): one.bytes_per_s for one in graph.edges}
    names = carried["scan_customer", "filter_names"]
    assert names is not None and names.value > 0


def test_a_placement_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    host = LocalHost()
    cpus = sorted(host.affinity(os.getpid()))
    small = SharedPlan(("--scale", "0.002"))
    with small.start(host, tmp_path, cpus) as running:
        operators = [one.operators[0] for one in running.threads()]
        wrong = {
            "scan_itm": packed([*operators, "scan_itm"], cpus[0]),
            operators[0]: packed(operators[1:], cpus[0]),
            operators[1]: packed([*operators, operators[1]], cpus[0]),
            "CPU 8000": packed(operators, 8000),
        }
        for named, placement in wrong.items():
            with pytest.raises(EngineFailed, match=named):
                running.place(placement)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--scale", "0"), "--scale 0"),
        (("--scale", "1e9"), "--scale 1e9"),
        (("--scale", "100"), "MiB of memory"),
        (("--browsers", "0"), "--browsers 0"),
        (("--placement", "/nonexistent"), "/nonexistent"),
        (("--dump", "/nonexistent"), "/nonexistent"),
        (("--colour", "red"), "--colour"),
    ],
)
def test_bad_input_is_one_line(flags: tuple[str, ...], named: str) -> None:
    done = sharedplan(*flags)
    assert done.returncode in (2, 5) and done.stdout == ""
    assert named in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("threads", [6, 44])  # of 44 for operators, and one that asks
def test_a_thread_that_cannot_be_started_is_one_line(threads: int) -> None:
    stack = 16 << 30

    def limit() -> None:
        space = threads * stack + stack // 2  # for as many stacks, and for the rest of the program
        resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))
        resource.setrlimit(resource.RLIMIT_AS, (space, space))

    done = sharedplan("--scale", "0.002", preexec_fn=limit)
    assert (done.returncode, done.stdout) == (5, "")
    assert "pids.max" in done.stderr and done.stderr.count("\n") == 1


def test_an_interrupt_ends_the_loop() -> None:
    with subprocess.Popen(
        [program(), "--scale", "0.002", "--requests", "yes"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin and child.stdout
        assert "threads" in child.stdout.readline()
        child.stdin.write("measure 600\n")
        child.stdin.flush()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, "", "")
