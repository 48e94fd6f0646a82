"""WIM is the engine as people start it: the plan's heap, and no ceiling of Atoll's."""

from __future__ import annotations

import pytest

from atoll.engines import registry
from atoll.engines.api import Installation, Layout
from atoll.engines.mariadb import option_file
from atoll.engines.postgresql import config_file
from atoll.engines.userconfig.merge import read_flags, read_properties
from atoll.plan import make_plan
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan
from tests.parts.machines import NodeShape, build

# 128 cores and 256 CPUs, of which a plan uses 128.
LARGE = build([[NodeShape((8,) * 8, memory_gib=512)]] * 2, smt=2)
SMALL = build([[NodeShape(rest=2, memory_gib=16)]])
THERE = Installation("10.11.19", "/usr", "/opt/jdk/bin/java", cache="/cache/x")


def planned(engine: str, policy: str, machine: Machine = LARGE) -> Plan:
    return make_plan(machine, registry.get(engine).traits, policy)


def laid_out(engine: str, policy: str, machine: Machine = LARGE) -> Layout:
    found, plan = registry.get(engine), planned(engine, policy, machine)
    ports = list(range(7000, 7000 + found.ports(plan)))
    return found.layout(plan, THERE, run_dir="/run/x", ports=ports, scratch_dir="/var/x")


@pytest.mark.parametrize("engine", ["trino", "presto"])
def test_a_worker_of_trino_counts_the_cpus_itself(engine: str) -> None:
    ceilings = {"task.concurrency", "task.max-worker-threads"}
    for policy, limited in (("wim", False), ("win", True)):
        layout = laid_out(engine, policy)
        text = layout.files["worker-0/etc/config.properties"]
        given = read_properties(text, where="")
        assert ceilings & given.keys() == (ceilings if limited else set())
        flags = read_flags(layout.files["worker-0/etc/jvm.config"], where="")
        counts = [flag for flag in flags if "ActiveProcessorCount" in flag]
        assert counts == (["-XX:ActiveProcessorCount=64"] if limited else [])


def test_the_heap_of_trino_is_the_plans() -> None:
    plan = planned("trino", "wim")
    flags = read_flags(laid_out("trino", "wim").files["worker-0/etc/jvm.config"], where="")
    heap = f"{plan.slots[0].heap_bytes >> 20}m"
    assert {f"-Xmx{heap}", f"-Xms{heap}"} <= set(flags)
    assert planned("trino", "win").total_heap_bytes == plan.total_heap_bytes


def test_a_worker_of_spark_offers_all_cores() -> None:
    for policy, limited in (("wim", False), ("win", True)):
        layout = laid_out("spark", policy)
        worker = next(spec for spec in layout.processes if spec.name == "worker-0")
        assert ("--cores" in worker.argv) is limited
        assert ("ActiveProcessorCount" in worker.env["JDK_JAVA_OPTIONS"]) is limited
        read = read_properties(layout.files["conf/spark-defaults.conf"], where="")
        assert ("spark.cores.max" in read) is limited
        assert ("spark.default.parallelism" in read) is limited
        # Queries are divided alike under every policy.
        assert read["spark.sql.shuffle.partitions"] == "256"


@pytest.mark.parametrize(("machine", "gather", "workers"), [(SMALL, 2, 8), (LARGE, 127, 128)])
def test_postgresql_never_gets_less_than_its_defaults(
    machine: Machine, gather: int, workers: int
) -> None:
    text = laid_out("postgresql", "wim", machine).files["postgresql-0.conf"]
    found = config_file.read(text, where="x")
    assert found["max_parallel_workers_per_gather"] == str(gather)
    assert found["max_parallel_workers"] == found["max_worker_processes"] == str(workers)
    assert int(found["shared_buffers"].removesuffix("kB")) << 10 == (
        planned("postgresql", "wim", machine).slots[0].heap_bytes
    )


def test_mariadb_never_gets_less_than_its_defaults() -> None:
    found = option_file.read(
        laid_out("mariadb", "wim", SMALL).files["mariadb-0.cnf"], {"mariadbd"}, where="x"
    )
    assert found["innodb_read_io_threads"] == found["innodb_write_io_threads"] == "4"
