"""TPC-C on a real server, a hundredth of a warehouse: measured, killed with -9 in the middle, and
the conditions themselves, each on data that violates it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from atoll.engines.postgresql.client import PostgreSQLClient
from atoll.engines.postgresql.oltp.workloads import Workload, tpcc, ycsb
from atoll.oltp.measure import NAME
from atoll.schema.oltp import OltpRuns
from atoll.store.paths import cache_dir
from tests.parts.deployment import left_over, until
from tests.parts.oltp_run import SHRINK
from tests.parts.postgresql import ORDINARY_USER
from tests.parts.server import up

pytestmark = pytest.mark.installed


class Started:
    """A measurement in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], log: Path, output: Path) -> None:
        self.process, self.log, self.output = process, log, output

    def until_transactions(self) -> None:
        """Until the driver's log, which it writes in blocks, has the first hundred of them."""
        until(lambda: "running for" in self.log.read_text(), self.log.read_text)
        logs = cache_dir("scratch") / NAME / "driver"
        until(
            lambda: any(one.stat().st_size for one in logs.glob("log.*")),
            self.log.read_text,
        )

    def end(self) -> tuple[int, str]:
        return self.process.wait(120), self.log.read_text()


@contextmanager
def started(seconds: int, folder: Path) -> Iterator[Started]:
    log, output = folder / "log", folder / "runs.json"
    argv = [sys.executable, "-m", "tests.parts.oltp_run", str(seconds), str(output)]
    with log.open("w") as file:
        process = subprocess.Popen(
            [*ORDINARY_USER, *argv], stdout=file, stderr=subprocess.STDOUT, text=True
        )
    try:
        yield Started(process, log, output)
    finally:
        process.kill()
        process.wait()
    assert left_over(NAME) == []
    assert children(process.pid) == []
    assert not (cache_dir("scratch") / NAME).exists()


def children(pid: int) -> list[int]:
    """The pgbench that the process has started."""
    done = subprocess.run(
        ["pgrep", "--parent", str(pid), "--exact", "pgbench"], capture_output=True, text=True
    )
    return [int(line) for line in done.stdout.split()]


def postmaster() -> int:
    return int((cache_dir("scratch") / NAME / "data-0/postmaster.pid").read_text().split()[0])


def sessions(of: int) -> list[int]:
    """The processes of that server's sessions; the last one is a client of pgbench."""
    done = subprocess.run(
        ["pgrep", "--parent", str(of), "--full", r"postgres: atoll postgres"],
        capture_output=True,
        text=True,
    )
    return [int(line) for line in done.stdout.split()]


def test_a_run_holds_all_conditions_where_the_plan_puts_it(tmp_path: Path) -> None:
    with started(2, tmp_path) as run:
        status, said = run.end()
    assert status == 0, said
    found = OltpRuns.model_validate_json(run.output.read_text())
    (one,) = found.runs
    assert [each.name for each in one.conditions] == [*map(str, range(1, 13)), "acknowledged"]
    assert not any(each.violations for each in one.conditions)
    assert one.acknowledged == one.counted > 0
    assert one.commits_per_s > 0 and one.threads > 0 and one.drifted == 0, one.drift
    assert found.durability["fsync"] == found.durability["synchronous_commit"] == "on"
    assert {each.type: each.count > 0 for each in one.latencies}["new_order"]


@pytest.mark.parametrize("victim", ["server", "session", "pgbench"])
def test_after_kill_9_the_conditions_hold(victim: str, tmp_path: Path) -> None:
    with started(30, tmp_path) as run:
        run.until_transactions()
        server = postmaster()
        (driver,) = children(run.process.pid)
        os.kill({"server": server, "session": sessions(server)[-1], "pgbench": driver}[victim], 9)
        status, said = run.end()
    assert status == 5, said
    last = said.strip().splitlines()[-1]
    assert "after its recovery all 13 conditions hold" in last
    assert int(re.findall(r"none of (\d+) acknowledged", last)[0]) > 0
    assert not run.output.exists(), "a block that was cut off is not kept"


def test_what_a_kill_9_of_everything_leaves_is_no_obstacle(tmp_path: Path) -> None:
    with started(30, tmp_path) as run:
        run.until_transactions()
        run.process.kill()
        until(lambda: left_over(NAME) == [], lambda: left_over(NAME))
        (cache_dir("scratch") / NAME / "data-0").stat()
        with started(1, tmp_path) as again:
            status, said = again.end()
        assert status == 0, said


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    with started(30, tmp_path) as run:
        run.until_transactions()
        run.process.send_signal(signal.SIGINT)
        assert run.end()[0] == 130


# ---- each condition, violated


@pytest.fixture(scope="module")
def client() -> Iterator[PostgreSQLClient]:
    """A client of a server with both workloads' rows."""
    with up("postgresql", "oltp-data", "wim") as record:
        found = PostgreSQLClient.at(record.endpoints[0], timeout_s=60)
        for work in (tpcc(2, shrink=SHRINK), ycsb(20, zipf=False)):
            for statement in (*work.schema, *(one for rows in work.rows for one in rows)):
                found.execute(statement, timeout_s=60)
            for statement in work.finish:
                found.execute(statement, timeout_s=60)
        yield found
        found.close()


def violated(client: PostgreSQLClient, work: Workload) -> set[str]:
    return {one.name for one in work.conditions if client.execute(one.sql, timeout_s=60).rows}


VIOLATIONS = {
    "1": "update warehouse set w_ytd = w_ytd + 1 where w_id = 2",
    "2": "update district set d_next_o_id = d_next_o_id + 1 where d_w_id = 1 and d_id = 10",
    "3": "delete from new_order where no_w_id = 1 and no_d_id = 3 and no_o_id = 25",
    "4": "delete from order_line where ol_w_id = 2 and ol_d_id = 1 and ol_o_id = 30",
    "5": "update orders set o_carrier_id = 1 where o_w_id = 1 and o_d_id = 1 and o_id = 30",
    "6": "update orders set o_ol_cnt = 4 where o_w_id = 1 and o_d_id = 1 and o_id = 1",
    "7": "update order_line set ol_delivery_d = null where ol_w_id = 1 and ol_o_id = 1",
    "8": "delete from history where h_w_id = 2 and h_d_id = 4 and h_c_id = 7",
    "9": "update history set h_d_id = 5 where h_w_id = 1 and h_d_id = 4 and h_c_id = 7",
    "10": "update customer set c_balance = 0 where c_w_id = 1 and c_d_id = 1 and c_id = 1",
    "11": "update customer set c_delivery_cnt = 1 where c_w_id = 1 and c_d_id = 1 and c_id = 1",
    "12": "update customer set c_ytd_payment = 0 where c_w_id = 1 and c_d_id = 1 and c_id = 1",
}
YCSB_VIOLATIONS = {
    "keys": "delete from usertable where ycsb_key = 7",
    "fields": "update usertable set field3 = left(field3, 99), field4 = field4 || 'x' "
    "where ycsb_key = 7",
}


def test_the_loaded_rows_hold_all_conditions(client: PostgreSQLClient) -> None:
    assert violated(client, tpcc(2, shrink=SHRINK)) == set()
    assert violated(client, ycsb(20, zipf=False)) == set()


@pytest.mark.parametrize("name", [*VIOLATIONS, *YCSB_VIOLATIONS])
def test_a_violated_condition_is_found(client: PostgreSQLClient, name: str) -> None:
    of_tpcc = name in VIOLATIONS
    client.execute("begin", timeout_s=60)
    try:
        client.execute({**VIOLATIONS, **YCSB_VIOLATIONS}[name], timeout_s=60)
        work = tpcc(2, shrink=SHRINK) if of_tpcc else ycsb(20, zipf=False)
        assert name in violated(client, work)
    finally:
        client.execute("rollback", timeout_s=60)


def test_a_change_of_a_record_counts_itself_and_keeps_its_size(client: PostgreSQLClient) -> None:
    work = ycsb(20, zipf=False)
    before = client.execute(work.counted[1], timeout_s=60).rows[0][0]
    for field in range(10):
        client.execute(f"select ycsb_change(3, {field})", timeout_s=60)
    assert client.execute(work.counted[1], timeout_s=60).rows[0][0] == before + 10
    assert violated(client, work) == set()


def test_a_wrong_item_rolls_the_order_back(client: PostgreSQLClient) -> None:
    """With no item at all, each order names a wrong one."""
    next_order = "select sum(d_next_o_id), (select count(*) from orders) from district"
    before = client.execute(next_order, timeout_s=60).rows
    client.execute("begin; delete from item; commit", timeout_s=60)
    ((total,),) = client.execute("call tpcc_new_order(1, 1, 1, 2, 1000, null)", timeout_s=60).rows
    assert total is None
    assert client.execute(next_order, timeout_s=60).rows == before
    assert violated(client, tpcc(2, shrink=SHRINK)) == set()
