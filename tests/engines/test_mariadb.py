"""MariaDB: answers, what clients see, up, verify and down, and killed: real servers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from atoll.engines.mariadb.client import MariaDBClient, at
from atoll.engines.mariadb.engine import MariaDBEngine
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.schema.deployment import State
from tests.parts.deployment import until, until_gone
from tests.parts.loading import check_answers, check_loading_survives, check_values
from tests.parts.postgresql import pids
from tests.parts.server import atoll, record_of, succeed, traces, up

pytestmark = pytest.mark.installed


@pytest.fixture(scope="module", autouse=True)
def _is_there() -> None:
    try:
        MariaDBEngine().find(LocalHost())
    except EngineFailed as fault:
        pytest.skip(str(fault))


def test_all_answers_are_right_under_two_policies() -> None:
    check_answers("mariadb")


def test_every_value_is_loaded_as_it_is(tmp_path: Path) -> None:
    check_values("mariadb", tmp_path)


def test_loading_survives_a_kill_and_happens_once(tmp_path: Path) -> None:
    check_loading_survives("mariadb", tmp_path)


# ---- what clients see


@pytest.fixture(scope="module")
def path() -> Iterator[str]:
    with up("mariadb", "maria-sql", "wim") as record:
        yield record.endpoints[0]


@pytest.fixture
def server(path: str) -> Iterator[MariaDBClient]:
    client = at(path, timeout_s=60)
    yield client
    client.close()


@pytest.mark.parametrize(
    ("sql", "type_name", "value"),
    [
        ("1", "integer", 1),
        ("9223372036854775807", "bigint", 9223372036854775807),
        ("cast(1.50 as decimal(15,2))", "decimal(15,2)", Decimal("1.50")),
        ("cast(-7 as decimal(5,0))", "decimal(5,0)", Decimal("-7")),
        ("cast(1.5 as double)", "double", 1.5),
        ("'100%'", "varchar", "100%"),
        ("cast(null as char)", "varchar", None),
        ("timestamp '2020-01-02 03:04:00'", "datetime", "2020-01-02T03:04:00"),
        ("extract(year from date '1995-03-15')", "bigint", 1995),
    ],
)
def test_values_keep_their_types(
    server: MariaDBClient, sql: str, type_name: str, value: object
) -> None:
    answer = server.execute(f"select {sql}", timeout_s=60)
    assert answer.rows == [(value,)]
    assert type(answer.rows[0][0]) is type(value)
    if type_name != "bigint":  # the length of a function's result is MariaDB's choice
        assert [column.type for column in answer.columns] == [type_name]


def test_text_is_ordered_bytewise_as_in_the_other_engines(server: MariaDBClient) -> None:
    sql = "select x from (select 'a' as x union select 'B' union select '_' union select 'ä') t"
    rows = server.execute(f"{sql} order by x", timeout_s=60).rows
    assert [x for (x,) in rows] == ["B", "_", "a", "ä"]


def test_of_several_statements_the_last_answers(server: MariaDBClient) -> None:
    assert server.execute("create view v as select 7; drop view v", timeout_s=60).rows == []
    assert server.execute("begin; select 1; select 2; commit; select 3", timeout_s=60).rows == [
        (3,)
    ]


@pytest.mark.parametrize(
    ("sql", "words"),
    [("selec", "error in your SQL syntax"), ("select * from nix", "doesn't exist")],
)
def test_a_fault_of_the_query_is_one_line_and_the_connection_stays(
    server: MariaDBClient, sql: str, words: str
) -> None:
    with pytest.raises(EngineFailed, match=words) as caught:
        server.execute(sql, timeout_s=60)
    assert "\n" not in str(caught.value)
    assert server.instances(timeout_s=60) == 1


def running(server: MariaDBClient) -> list[tuple[object, ...]]:
    sql = "select info from information_schema.processlist where info like '%benchmark(9%'"
    return server.execute(f"{sql} and id != connection_id()", timeout_s=60).rows


BUSY = "select benchmark(9000000000, sha2('x', 512))"


def test_past_its_limit_a_query_is_cancelled_and_the_connection_closed(
    server: MariaDBClient, path: str
) -> None:
    other = at(path, timeout_s=60)
    with pytest.raises(EngineFailed, match=r"0\.5 s"):
        other.execute(BUSY, timeout_s=0.5)
    with pytest.raises(EngineFailed, match="was closed"):
        other.execute("select 1", timeout_s=60)
    until(lambda: not running(server), lambda: running(server))


def test_a_query_that_is_interrupted_is_cancelled(server: MariaDBClient, path: str) -> None:
    other = at(path, timeout_s=60)

    def interrupt() -> None:  # no sooner: the tests themselves would be interrupted
        until(lambda: bool(running(server)), lambda: "the query does not run")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        other.execute(BUSY, timeout_s=60)
    until(lambda: not running(server), lambda: running(server))


def test_a_missing_server_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match=r"No such file.*'atoll ps'"):
        at(str(tmp_path / "nix.sock"), timeout_s=2)


# ---- the deployment


@pytest.mark.parametrize("policy", ["wic", "wim"])
def test_servers_are_where_planned_and_leave_nothing(policy: str) -> None:
    name = f"maria-{policy}"
    with up("mariadb", name, policy) as record:
        slots = record.plan.slots
        assert record.state is State.READY
        clients = MariaDBEngine().connect(record.endpoints, timeout_s=60)
        for slot, client in zip(slots, clients, strict=True):
            (row,) = client.execute(
                "select @@innodb_buffer_pool_size, @@skip_networking, @@innodb_numa_interleave",
                timeout_s=60,
            ).rows
            # The pool is a multiple of its chunks.
            assert slot.heap_bytes <= int(row[0]) <= slot.heap_bytes * 1.1
            assert row[1:] == (1, 0)
            client.close()
        succeed("verify", name)
        assert succeed("down", name) == f"{name}: down\n"
        assert traces(record) == []


def test_a_users_configuration_is_used_and_not_changed(tmp_path: Path) -> None:
    base = tmp_path / "etc"
    (base / "conf.d").mkdir(parents=True)
    (base / "empty.d").mkdir()
    text = "[mysqld]\nmax_connections = 33\nwait_timeout = 5\nport = 3306\n"
    text += "log_error = /nix/error.log\nssl_key = /nix/key.pem\nssl_cert = /nix/cert.pem\n"
    more = "!includedir conf.d/\n!includedir empty.d\n!include own.ini\n"
    (base / "my.cnf").write_text(f"{text}{more}")
    (base / "own.ini").write_text("[galera]\nwsrep_on = ON\nwsrep_cluster_address = gcomm://nix\n")
    (base / "conf.d/own.cnf").write_text("[mariadb]\njoin-buffer-size = 7M\ndatadir = /nix\n")
    before = {path: path.stat().st_mtime_ns for path in base.rglob("*")}
    with up("mariadb", "maria-base", "wim", "--base", str(base)) as record:
        client = at(record.endpoints[0], timeout_s=60)
        sql = (
            "select @@max_connections, @@join_buffer_size, @@skip_networking, @@datadir, @@have_ssl"
        )
        (row,) = client.execute(sql, timeout_s=60).rows
        # A bench's session has to be there after a long pass of others; users' have their limit.
        limits = "select @@global.wait_timeout, @@session.wait_timeout > 86400"
        assert client.execute(limits, timeout_s=60).rows == [(5, 1)]
        client.close()
        assert row == (33, 7 << 20, 1, f"{record.scratch_dir}/data-0/", "DISABLED")
    assert {path: path.stat().st_mtime_ns for path in base.rglob("*")} == before


def test_a_killed_server_fails_the_deployment_and_nothing_is_left() -> None:
    with up("mariadb", "maria-killed", "wic") as record:
        os.kill(pids(record)[0], signal.SIGKILL)
        until_gone("maria-killed")
        failed = record_of("maria-killed")
        assert failed.state is State.FAILED
        assert "worker-0 died (killed by SIGKILL)" in failed.error
        assert traces(record) == []


def test_root_is_refused_in_one_line() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be refused for being root")
    done = atoll("up", "mariadb", run_as=())
    assert done.returncode == 4
    *warnings, complaint = done.stderr.splitlines()
    assert complaint.startswith("atoll: MariaDB refuses to run as root; ")
    assert all(line.startswith("atoll: warning: ") for line in warnings)
