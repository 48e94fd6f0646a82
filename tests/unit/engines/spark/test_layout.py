"""Spark's layout: processes, places, heaps, flags and ports."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from atoll.engines.api import Installation, Layout, Table
from atoll.engines.spark.engine import SparkEngine
from atoll.plan import make_plan
from atoll.plan.cluster import over_machines
from atoll.plan.jvm import placement_flags
from atoll.plan.network import Place
from atoll.schema.deployment import Role
from atoll.schema.plan import Plan
from tests.parts.machines import listening, milan

INSTALLED = Installation("4.3.0", "/opt/spark", "/opt/jdk/bin/java", "17.0.1")


def spark(plan: Plan) -> Layout:
    ports = range(7000, 7000 + SparkEngine().ports(plan))
    return SparkEngine().layout(
        plan, INSTALLED, run_dir="/run/x", ports=list(ports), scratch_dir="/var/x"
    )


def defaults(layout: Layout) -> dict[str, str]:
    lines = layout.files["conf/spark-defaults.conf"].splitlines()
    return dict(line.split(" ", 1) for line in lines)


def option(argv: Sequence[str], name: str) -> str:
    return argv[argv.index(name) + 1]


def test_spark_has_a_worker_per_slot_between_master_and_driver() -> None:
    plan = make_plan(milan(2), SparkEngine().traits, "wicp")
    layout = spark(plan)
    master, *workers, driver = layout.processes
    assert [spec.stage for spec in layout.processes] == [0, *(1 for _ in plan.slots), 2]
    assert (master.role, master.slot, driver.role) == (Role.COORDINATOR, None, Role.DRIVER)
    assert [worker.slot for worker in workers] == [slot.index for slot in plan.slots]
    assert len({spec.name for spec in layout.processes}) == len(layout.processes)
    assert len({worker.ready_port for worker in workers} | {master.ready_port}) == 1 + len(workers)
    assert layout.endpoints == (driver.ready_socket,)
    for worker, slot in zip(workers, plan.slots, strict=True):
        assert option(worker.argv, "--cores") == str(slot.threads)
        assert option(worker.argv, "--host") == "127.0.0.1"
        flags = [*placement_flags(slot, plan), "-Djava.io.tmpdir=/var/x"]
        assert worker.env["JDK_JAVA_OPTIONS"].split() == flags
        # They are for the executor, and the daemon does not follow them.
        assert "-XX:-AlwaysPreTouch" in worker.argv and "-Xms128m" in worker.argv


def test_spark_holds_totals_and_heaps_as_planned() -> None:
    plan = make_plan(milan(2), SparkEngine().traits, "wicp")
    found = defaults(spark(plan))
    heap = min(slot.heap_bytes for slot in plan.slots) >> 20
    assert found["spark.executor.memory"] == f"{heap}m"
    assert found["spark.cores.max"] == str(sum(slot.threads for slot in plan.slots))
    assert found["spark.sql.shuffle.partitions"] == str(plan.shuffle_partitions)
    assert found["spark.driver.memory"] == f"{plan.coordinator.heap_bytes >> 20}m"  # type: ignore[union-attr]
    assert "spark.executor.cores" not in found, "it would leave part of an unequal slot idle"


def test_spark_gives_every_executor_its_slots_heap() -> None:
    equal = make_plan(milan(2), SparkEngine().traits, "wicp")
    assert not any("_JAVA_OPTIONS" in spec.env for spec in spark(equal).processes)
    first, second, *_ = equal.slots
    larger = second.model_copy(update={"heap_bytes": first.heap_bytes + (64 << 20)})
    plan = equal.model_copy(update={"slots": (first, larger)})
    layout = spark(plan)
    _, small, large, driver = layout.processes
    heap_mib = first.heap_bytes >> 20
    assert defaults(layout)["spark.executor.memory"] == f"{heap_mib}m"
    assert option(large.argv, "--memory") == f"{heap_mib}m", "the master must find room for one"
    assert large.env["_JAVA_OPTIONS"] == f"-Xmx{heap_mib + 64}m"
    assert not {"_JAVA_OPTIONS"} & {*small.env, *driver.env}


def test_spark_writes_its_event_log_beside_what_it_spills() -> None:
    layout = spark(make_plan(milan(1), SparkEngine().traits, "wicp"))
    found = defaults(layout)
    assert found["spark.eventLog.dir"] == "file:///var/x/events"
    assert json.loads(layout.files["sqlhost.json"])["events"] == "/var/x/events"
    assert found["spark.eventLog.compress"] == found["spark.eventLog.rolling.enabled"] == "false"


@pytest.mark.parametrize("heap_bytes", [None, 0])
def test_spark_starts_a_driver_for_an_edited_plan_too(heap_bytes: int | None) -> None:
    plan = make_plan(milan(1), SparkEngine().traits, "wicp")
    assert plan.coordinator is not None
    edited = plan.coordinator.model_copy(update={"heap_bytes": heap_bytes})
    plan = plan.model_copy(update={"coordinator": None if heap_bytes is None else edited})
    assert defaults(spark(plan))["spark.driver.memory"] == "1024m"


def test_spark_does_not_move_on_from_a_port_that_is_taken() -> None:
    found = defaults(spark(make_plan(milan(1), SparkEngine().traits, "wicp")))
    assert found["spark.port.maxRetries"] == "0"


def test_spark_opens_nothing_to_others_and_spills_to_the_scratch_folder() -> None:
    plan = make_plan(milan(1), SparkEngine().traits, "wicp")
    layout, again = spark(plan), spark(plan)
    found = defaults(layout)
    assert found["spark.driver.bindAddress"] == found["spark.driver.host"] == "127.0.0.1"
    assert (found["spark.ui.enabled"], found["spark.master.rest.enabled"]) == ("false", "false")
    assert found["spark.authenticate"] == "true"
    secret = found["spark.authenticate.secret"]
    assert len(secret) >= 32
    assert secret != defaults(again)["spark.authenticate.secret"]
    for spec in layout.processes:
        assert secret not in " ".join(spec.argv)
        assert secret not in spec.env.values()
        assert spec.env["SPARK_LOCAL_DIRS"].startswith("/var/x/")
        assert spec.env["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_a_quote_in_a_path_stays_in_its_string() -> None:
    (statement,) = SparkEngine().attach(Table("t", "/a/it's.parquet", ()))
    assert "/a/it\\'s" in statement


def test_spark_listens_where_the_plan_says() -> None:
    plan = make_plan(milan(2), SparkEngine().traits, "wicp")
    on_network = listening(plan, coordinator="10.0.0.5", slots=("10.0.0.5", "10.0.1.5"))
    layout = spark(on_network)
    master, *workers, driver = layout.processes
    found = defaults(layout)
    assert option(master.argv, "--host") == master.ready_address == "10.0.0.5"
    for worker, slot in zip(workers, on_network.slots, strict=True):
        assert option(worker.argv, "--host") == worker.ready_address == slot.address
        assert worker.env["SPARK_LOCAL_IP"] == slot.address
        assert worker.argv[-1] == f"spark://10.0.0.5:{master.ready_port}"
    assert driver.env["SPARK_LOCAL_IP"] == "10.0.0.5"
    assert found["spark.master"] == f"spark://10.0.0.5:{master.ready_port}"
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "10.0.0.5"
    assert (found["spark.authenticate"], len(found["spark.authenticate.secret"])) == ("true", 64)


def test_in_a_cluster_one_machine_leads_and_the_others_join_with_the_secret() -> None:
    traits = SparkEngine().traits
    plans = {
        name: make_plan(milan(2), traits, "win", listen=(Place(address, None),))
        for name, address in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
    }
    head, other = over_machines(plans, 7077).values()
    engine = SparkEngine().spanning("s3cret")
    assert "s3cret" not in repr(engine)
    leads, joins = (
        engine.layout(part, INSTALLED, run_dir="/run/x", ports=range(8000, 8002))
        for part in (head, other)
    )
    assert engine.ports(head) == engine.ports(other) == 2
    assert [spec.name for spec in leads.processes] == ["master", "worker-0", "worker-1", "driver"]
    assert [spec.name for spec in joins.processes] == ["worker-0", "worker-1"]
    assert len(leads.endpoints) == 1 and joins.endpoints == ()
    assert json.loads(leads.files["sqlhost.json"])["executors"] == 4
    for layout, address in ((leads, "10.0.0.1"), (joins, "10.0.0.2")):
        assert defaults(layout)["spark.authenticate.secret"] == "s3cret"
        for worker in layout.processes:
            if worker.role is Role.WORKER:
                assert worker.argv[-1] == "spark://10.0.0.1:7077"
                assert worker.ready_address == option(worker.argv, "--host") == address
    assert defaults(leads)["spark.cores.max"] == str(head.total_threads + other.total_threads)
