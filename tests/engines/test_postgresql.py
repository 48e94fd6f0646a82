"""PostgreSQL up, checked and down again, and killed: real servers, driven by the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest

from atoll.engines.postgresql.client import PostgreSQLClient
from atoll.errors import EngineFailed
from atoll.schema.deployment import Deployment, State
from tests.parts import server as server_parts
from tests.parts.deployment import kill_at_once, until, until_gone
from tests.parts.postgresql import ask, at_work, busy, pids
from tests.parts.server import atoll, record_of, succeed, traces

pytestmark = pytest.mark.installed


@contextmanager
def up(name: str, policy: str) -> Iterator[Deployment]:
    with server_parts.up("postgresql", name, policy) as record:
        yield record


# ---- what clients see


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQLClient]:
    with up("pg-sql", "wim") as record:
        client = PostgreSQLClient.at(record.endpoints[0], timeout_s=60)
        yield client
        client.close()


# Each alone would keep a client out, or change what it sees.
MEANT_FOR_OTHERS = {
    "PGSERVICE": "prod",
    "PGHOSTADDR": "127.0.0.1",
    "PGOPTIONS": "-c search_path=nix",
    "PGREQUIREAUTH": "scram-sha-256",
    "PGREQUIREPEER": "nobody-we-know",
    "PGCHANNELBINDING": "require",
    "PGSSLMODE": "verify-full",
    "PGSSLNEGOTIATION": "direct",
    "PGTARGETSESSIONATTRS": "standby",
    "PGCLIENTENCODING": "SQL_ASCII",
    "PGAPPNAME": "theirs",
}


def test_the_environment_does_not_steer_atolls_client(
    server: PostgreSQLClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = tmp_path / "services"
    services.write_text("[prod]\nhost=db.example\ndbname=shop\noptions=-c search_path=nix\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    for name, value in MEANT_FOR_OTHERS.items():
        monkeypatch.setenv(name, value)
    client = PostgreSQLClient.at(server.where, timeout_s=60)
    sql = "select current_database(), current_setting('search_path'), 'ä'"
    assert client.execute(sql, timeout_s=60).rows == [("postgres", '"$user", public', "ä")]
    client.close()


@pytest.mark.parametrize(
    ("sql", "type_name", "value"),
    [
        ("1::int", "integer", 1),
        ("9223372036854775807", "bigint", 9223372036854775807),
        ("1.50::numeric(15,2)", "numeric(15,2)", Decimal("1.50")),
        ("avg(1.5::numeric(15,2))", "numeric", Decimal("1.5")),
        ("1.5::float8", "double precision", 1.5),
        ("true", "boolean", True),
        ("'100%'::text", "text", "100%"),
        ("null::text", "text", None),
        ("timestamp '2020-01-02 03:04'", "timestamp without time zone", "2020-01-02T03:04:00"),
        ("'{1,2}'::int[]", "integer[]", "[1, 2]"),
    ],
)
def test_values_keep_their_types(
    server: PostgreSQLClient, sql: str, type_name: str, value: object
) -> None:
    answer = server.execute(f"select {sql}", timeout_s=60)
    assert answer.rows == [(value,)]
    assert type(answer.rows[0][0]) is type(value)
    assert [column.type for column in answer.columns] == [type_name]


def test_text_is_ordered_bytewise_as_in_the_other_engines(server: PostgreSQLClient) -> None:
    sql = "select x from (values ('a'), ('B'), ('_'), ('ä')) as t(x) order by x"
    assert [x for (x,) in server.execute(sql, timeout_s=60).rows] == ["B", "_", "a", "ä"]


def test_of_several_statements_the_last_answers(server: PostgreSQLClient) -> None:
    assert (
        server.execute("create view v as select 7; select * from v; drop view v", timeout_s=60).rows
        == []
    )
    assert server.execute("begin; select 1; select 2; commit; select 3", timeout_s=60).rows == [
        (3,)
    ]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("selec", "syntax error"),
        ("select 1/0", "division by zero"),
        ("table nix", "does not exist"),
    ],
)
def test_a_fault_of_the_query_is_one_line_and_the_connection_stays(
    server: PostgreSQLClient, sql: str, words: str
) -> None:
    with pytest.raises(EngineFailed, match=words) as caught:
        server.execute(sql, timeout_s=60)
    assert "\n" not in str(caught.value)
    assert server.instances(timeout_s=60) == 1


def test_past_its_limit_a_query_is_cancelled_and_the_connection_closed(
    server: PostgreSQLClient,
) -> None:
    other = PostgreSQLClient.at(server.where, timeout_s=60)
    with pytest.raises(EngineFailed, match=r"0\.2 s"):
        other.execute("select pg_sleep(600)", timeout_s=0.2)
    with pytest.raises(EngineFailed, match="was closed"):
        other.execute("select 1", timeout_s=60)
    running = "select count(*) from pg_stat_activity where query = 'select pg_sleep(600)'"
    until(
        lambda: server.execute(running, timeout_s=60).rows == [(0,)],
        lambda: "the query still runs",
    )


CLOSED_WHILE_ASKING = """
import sys, threading, time
from atoll.engines.postgresql.client import PostgreSQLClient
from atoll.errors import EngineFailed, ServerGone

def ask(client):
    try:
        client.execute("select pg_sleep(600)", timeout_s=600)
    except EngineFailed as fault:
        told.append("was closed" in str(fault) and not isinstance(fault, ServerGone))

told = []
for number in range(40):
    client = PostgreSQLClient.at(sys.argv[1], timeout_s=60)
    thread = threading.Thread(target=ask, args=(client,))
    thread.start()
    time.sleep(0.002 * number)  # on its way, under way
    client.close()
    thread.join(60)
print(told == [True] * 40)
"""


def test_closing_does_not_free_the_memory_of_a_waiting_thread(server: PostgreSQLClient) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLOSED_WHILE_ASKING, server.where],
        env={**os.environ, "MALLOC_PERTURB_": "165"},  # freed memory is overwritten at once
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_missing_server_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match=r"No such file.*'atoll ps'"):
        PostgreSQLClient.at(str(tmp_path / ".s.PGSQL.5432"), timeout_s=2)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PGHOSTADDR", "127.0.0.1"),
        ("PGOPTIONS", "-c nonsense=1"),
        ("PGTARGETSESSIONATTRS", "standby"),
        ("PGGSSENCMODE", "require"),
    ],
)
def test_settings_for_other_servers_in_the_environment_do_not_count(
    variable: str, value: str, server: PostgreSQLClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    other = PostgreSQLClient.at(server.where, timeout_s=60)
    assert other.execute("select 1", timeout_s=60).rows == [(1,)]
    other.close()


# ---- the deployment


@pytest.mark.parametrize("policy", ["wic", "wim"])
def test_busy_servers_are_where_planned_and_end_with_their_sessions(policy: str) -> None:
    """`traces` at the end of `up` says that nothing is left."""
    name = f"pg-{policy}"
    with up(name, policy) as record:
        slots = record.plan.slots
        assert record.state is State.READY
        assert len(record.endpoints) == len(slots)
        asked = ask(
            record, "select setting::bigint * 8192 from pg_settings where name = 'shared_buffers'"
        )
        assert asked == [[(slot.heap_bytes,)] for slot in slots]
        with busy(record):
            found = at_work(record)
            for slot, workers in zip(slots, found, strict=True):
                for pid in workers:
                    allowed = os.sched_getaffinity(pid)
                    assert allowed == (set(slot.cpus) if slot.cpus else os.sched_getaffinity(0))
            checked = succeed("verify", name, "--json")
            for pid in (pid for workers in found for pid in workers):
                assert str(pid) in checked
            assert succeed("down", name) == f"{name}: down\n"
            assert traces(record) == []


def test_two_deployments_side_by_side_keep_their_data_apart() -> None:
    with up("pg-one", "wim") as one, up("pg-two", "wim") as two:
        ask(one, "create table mine as select 1 as x")
        assert ask(one, "select x from mine") == [[(1,)]]
        with pytest.raises(EngineFailed, match='"mine" does not exist'):
            ask(two, "select x from mine")


@pytest.mark.parametrize("whom", ["the postmaster", "a session"])
def test_a_killed_process_fails_the_deployment_and_nothing_is_left(whom: str) -> None:
    with up("pg-killed", "wic") as record:
        with busy(record):
            victim = pids(record)[0] if whom == "the postmaster" else at_work(record)[0][0]
            os.kill(victim, signal.SIGKILL)
            until_gone("pg-killed")
        failed = record_of("pg-killed")
        assert failed.state is State.FAILED
        assert "worker-0 died" in failed.error
        assert ("killed by SIGKILL" in failed.error) == (whom == "the postmaster")
        assert traces(record) == []


def test_busy_servers_end_with_a_killed_supervisor() -> None:
    with up("pg-orphans", "wic") as record:
        assert record.supervisor is not None
        with busy(record):
            os.kill(record.supervisor.pid, signal.SIGKILL)
            until_gone("pg-orphans")
        assert traces(record) == []


def test_the_next_command_cleans_up_after_a_kill_of_everything() -> None:
    with up("pg-razed", "wic") as record:
        assert record.supervisor is not None and record.keeper is not None
        kill_at_once([record.keeper.pid, record.supervisor.pid, *pids(record)])
        assert traces(record) != []
        succeed("ps")
        assert traces(record) == []


def test_root_is_refused_in_one_line() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be refused for being root")
    done = atoll("up", "postgresql", run_as=())
    assert done.returncode == 4
    *warnings, complaint = done.stderr.splitlines()
    assert complaint.startswith("atoll: PostgreSQL refuses to run as root; ")
    assert all(line.startswith("atoll: warning: ") for line in warnings)
