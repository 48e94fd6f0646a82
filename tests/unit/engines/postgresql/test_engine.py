"""PostgreSQL: what a slot makes of its configuration. More: server/test_per_slot.py."""

from __future__ import annotations

import pytest

from atoll.engines.api import Installation, Layout
from atoll.engines.postgresql import config_file
from atoll.engines.postgresql.engine import PostgreSQLEngine
from atoll.engines.userconfig.tree import UserTree
from atoll.plan import make_plan
from atoll.schema.plan import Plan
from tests.parts.machines import MIB, NodeShape, build, milan

HOME = "/usr/lib/postgresql/15/bin"
INSTALLED = Installation("15.18", HOME, cache="/cache/postgresql")
ENGINE = PostgreSQLEngine()


def layout(plan: Plan, installed: Installation = INSTALLED) -> Layout:
    return ENGINE.layout(plan, installed, run_dir="/run/x", ports=(), scratch_dir="/var/x")


def settings(made: Layout, index: int) -> dict[str, str]:
    pairs = [line.split(" = ", 1) for line in made.files[f"postgresql-{index}.conf"].splitlines()]
    return {key: value.removeprefix("'").removesuffix("'") for key, value in pairs}


def size_bytes(text: str) -> int:
    return int(text[:-2]) * {"kB": 1 << 10, "MB": 1 << 20}[text[-2:]]


# ---- the layout


def test_a_slot_decides_its_servers_sizes() -> None:
    unequal = build([[NodeShape(chiplets=(8, 3), memory_gib=64)]])
    plan = make_plan(unequal, ENGINE.traits, "wicp")
    assert sorted(slot.threads for slot in plan.slots) == [3, 8]
    for slot in plan.slots:
        found = settings(layout(plan), slot.index)
        assert size_bytes(found["shared_buffers"]) == slot.heap_bytes
        assert int(found["max_parallel_workers"]) == slot.threads
        assert int(found["max_worker_processes"]) >= slot.threads
        # With the session's own process a query runs on as many as the slot has threads.
        assert int(found["max_parallel_workers_per_gather"]) + 1 == slot.threads
        together = (
            size_bytes(found["shared_buffers"])
            + size_bytes(found["min_dynamic_shared_memory"])
            + size_bytes(found["work_mem"]) * slot.threads
        )
        assert together <= slot.memory_bytes
        assert size_bytes(found["effective_cache_size"]) <= slot.memory_bytes
        # WIM gets as many streams as the finest policy has servers: more than the default of 100.
        assert int(found["max_connections"]) == 100 + slot.threads


def test_one_thread_runs_no_parallel_query() -> None:
    plan = make_plan(milan(1), ENGINE.traits, "wic")
    assert settings(layout(plan), 0)["max_parallel_workers_per_gather"] == "0"


def test_a_slot_of_more_threads_than_postgresql_takes_still_starts() -> None:
    """It refuses to start with more than 1024 parallel workers."""
    huge = build([[NodeShape(rest=1536, memory_gib=4096)]])
    plan = make_plan(huge, ENGINE.traits, "wim")
    assert plan.slots[0].threads > 1024
    found = settings(layout(plan), 0)
    for name in ("workers", "workers_per_gather", "maintenance_workers"):
        assert int(found[f"max_parallel_{name}"]) <= 1024


def test_a_small_slot_keeps_the_default_for_its_work() -> None:
    small = build([[NodeShape(rest=8, memory_gib=0.5)]])
    plan = make_plan(small, ENGINE.traits, "wim")
    assert plan.slots[0].heap_bytes <= 128 * MIB
    assert size_bytes(settings(layout(plan), 0)["work_mem"]) == 4 * MIB


def test_a_socket_has_the_name_that_libpq_looks_for() -> None:
    """PostgreSQL's manual, unix_socket_directories."""
    plan = make_plan(milan(2), ENGINE.traits, "win")
    made = layout(plan)
    for slot, spec in zip(plan.slots, made.processes, strict=True):
        found = settings(made, slot.index)
        assert spec.ready_socket == f"{found['unix_socket_directories']}/.s.PGSQL.{found['port']}"


def test_nothing_is_open_to_others() -> None:
    made = layout(make_plan(milan(1), ENGINE.traits, "win"))
    found = settings(made, 0)
    assert found["listen_addresses"] == ""
    assert found["unix_socket_permissions"] == "0700"
    assert {line.split()[0] for line in made.files["pg_hba.conf"].splitlines()} == {"local"}
    assert found["hba_file"] == "/run/x/pg_hba.conf"


# ---- a configuration of the user's


def test_a_users_configuration_opens_the_servers_to_nobody() -> None:
    text = "listen_addresses = '*'  # all\nfsync = on\nssl = on\nport = 1\n"
    theirs = UserTree("/etc/pg", {"postgresql.conf": text, "pg_hba.conf": "host all all 0/0 md5\n"})
    plan = make_plan(milan(2), ENGINE.traits, "win")
    made = ENGINE.on(theirs).layout(plan, INSTALLED, run_dir="/run/x", ports=())
    for slot in plan.slots:
        found = config_file.read(made.files[f"server-{slot.index}/postgresql.conf"], where="x")
        assert found["listen_addresses"] == ""
        assert found["port"] == str(5432 + slot.index)
        assert found["hba_file"] == "/run/x/pg_hba.conf"
        assert (found["fsync"], found["ssl"]) == ("on", "off")
    assert made.files["pg_hba.conf"] == "local all all trust\n"


PARALLEL = "max_parallel_workers", "max_parallel_workers_per_gather", "effective_cache_size"


@pytest.mark.parametrize(
    ("policy", "theirs", "expected"),
    [
        # Smaller than the slot's 8 threads and 30 GiB: the user's.
        ("win", ("4", "2", "'2GB'"), ("4", "2", "2GB")),
        ("win", ("0", "0", "100"), ("0", "0", "100")),
        # Larger: the slot's.
        ("win", ("'64'", "32", "900GB"), ("8", "7", None)),
        ("win", ("8\ninclude 'own'", "7", "1MB"), ("6", "7", "1MB")),
        ("win", ("8\ninclude '/else/where'", "5", "1MB"), ("8", "5", "1MB")),
        # The whole machine is the user's.
        ("wim", ("64", "32", "1MB"), ("64", "32", "1MB")),
    ],
)
def test_the_users_limits_stay_where_they_fit(
    policy: str, theirs: tuple[str, ...], expected: tuple[str | None, ...]
) -> None:
    text = "".join(f"{name} = {value}\n" for name, value in zip(PARALLEL, theirs, strict=True))
    # An included file is read where it is included only.
    texts = {"postgresql.conf": text, "own": "max_parallel_workers = 6\n"}
    for name, value in zip(PARALLEL, expected, strict=True):
        found = effective(policy, texts)
        assert value is None or found[name] == value
        assert int(found["max_worker_processes"]) == 8, "the slot's threads"


def test_processes_for_the_users_extensions_stay() -> None:
    for value in ("4", "48"):
        found = effective("win", {"postgresql.conf": f"max_worker_processes = {value}\n"})
        assert found["max_worker_processes"] == value


def effective(policy: str, texts: dict[str, str]) -> dict[str, str]:
    machine = build([[NodeShape(rest=8, memory_gib=64)]])
    plan = make_plan(machine, ENGINE.traits, policy)
    made = ENGINE.on(UserTree("/etc/pg", texts)).layout(plan, INSTALLED, run_dir="/run/x", ports=())
    lines: list[str] = []
    for line in made.files["server-0/postgresql.conf"].splitlines():
        inside = line.startswith("include 'own'")
        lines += made.files["server-0/own"].splitlines() if inside else [line]
    return config_file.read("\n".join(lines), where="x")
