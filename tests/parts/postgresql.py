"""For the tests of PostgreSQL, here and in the guest: who runs it, and how to keep it busy.

PostgreSQL refuses uid 0, which is what CI runs as. There commands run in a user namespace
(user_namespaces(7)) that calls the same user by another number: files and folders stay its own,
as they would not be for a second account, and no right is left that an ordinary user lacks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from atoll.engines.api import Installation
from atoll.engines.loading import instance as template_instance
from atoll.engines.postgresql.client import PostgreSQLClient
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.engines.postgresql.settings import make_empty
from atoll.engines.server.per_slot import template_path
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.schema.deployment import Deployment
from atoll.store.paths import cache_dir
from tests.parts.deployment import until

# By its path: in the guest's shell a program of that name without these flags comes first.
_UNSHARE = shutil.which("unshare") or "unshare"
ORDINARY_USER = (
    (_UNSHARE, "--user", "--map-user=65534", "--map-group=65534") if os.geteuid() == 0 else ()
)
# As many processes as a slot has threads, which together sleep for an hour over the rows: with 8 of
# them in the guest each is still at it when all of them have been looked at.
NAP = "pg_sleep(0.6)"
SLOW = f"""
    set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0;
    select count({NAP}) from numbers
"""
NUMBERS = """
    create table numbers with (parallel_workers = 64) as select generate_series(1, 6000) as n;
    analyze numbers
"""


def empty_template() -> str:
    """An empty data directory in this machine's cache, for the guest: initdb takes minutes there,
    and it sees the cache."""
    version, home = PostgreSQLEngine().find(LocalHost())
    template = template_path(Installation(version, home, cache=str(cache_dir("postgresql"))))
    code = (
        f"import sys; from {template_instance.__name__} import *; "
        "ensure_template(Path(sys.argv[1]), sys.argv[2:], processes.run)"
    )
    argv = [sys.executable, "-c", code, template, *make_empty(home)]
    subprocess.run([*ORDINARY_USER, *argv], check=True)
    return template


def pids(record: Deployment) -> list[int]:
    """The postmasters', in the order of the slots."""
    return [process.id.pid for process in record.processes if process.id is not None]


def ask(record: Deployment, sql: str) -> list[list[tuple[Any, ...]]]:
    """The answer of every instance."""
    answers = []
    for client in PostgreSQLEngine().connect(record.endpoints, timeout_s=60):
        answers.append(client.execute(sql, timeout_s=60).rows)
        client.close()
    return answers


@contextmanager
def busy(record: Deployment) -> Iterator[None]:
    """Every instance is in the middle of a long query; in parallel where its slot allows it."""
    ask(record, NUMBERS)
    faults: list[str] = []

    def work(path: str) -> None:
        client = PostgreSQLClient.at(path, timeout_s=60)
        try:
            client.execute(SLOW, timeout_s=3600)
        except EngineFailed as fault:
            faults.append(str(fault))
        finally:
            client.close()

    threads = [threading.Thread(target=work, args=(path,)) for path in record.endpoints]
    for thread in threads:
        thread.start()
    try:
        until(
            lambda: all(
                # A whole machine's server may start as many as its own defaults allow.
                (len(found) == slot.threads if slot.cpus else len(found) >= slot.threads)
                for found, slot in zip(at_work(record), record.plan.slots, strict=True)
            ),
            lambda: (at_work(record), faults),
            patience_s=300,  # in a guest each look takes seconds
        )
        yield
    finally:
        for path in record.endpoints:
            cancel(path)
        for thread in threads:
            thread.join()


def at_work(record: Deployment) -> list[list[int]]:
    """By instance: the sessions' own processes and the parallel workers that run the query."""
    sql = f"select pid from pg_stat_activity where query like '%{NAP}%' "
    sql += "and state = 'active' and pid != pg_backend_pid()"
    return [[pid for (pid,) in rows] for rows in ask(record, sql)]


def cancel(path: str) -> None:
    try:
        client = PostgreSQLClient.at(path, timeout_s=60)
    except EngineFailed:
        return  # down already
    sql = f"select pg_cancel_backend(pid) from pg_stat_activity where query like '%{NAP}%'"
    client.execute(sql + " and pid != pg_backend_pid()", timeout_s=60)
    client.close()
