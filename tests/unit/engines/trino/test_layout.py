"""The configuration of Trino and Presto in Atoll's own tree: places, heaps, secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from atoll.engines import registry
from atoll.engines.api import Layout
from atoll.engines.trino.client import parse_endpoint
from atoll.engines.userconfig.merge import read_properties
from atoll.errors import EngineFailed, UsageError
from atoll.plan.jvm import placement_flags
from atoll.schema.deployment import Role
from atoll.schema.plan import Plan
from tests.parts.faults import fails
from tests.parts.machines import listening
from tests.parts.trino_plans import (
    BOTH,
    INSTALLED,
    MIB,
    a_plan,
    a_tree,
    config,
    flags,
    lay_out,
    mib,
)


@BOTH
def test_a_coordinator_without_tasks_and_a_worker_per_slot(name: str) -> None:
    plan = a_plan(name)
    layout = lay_out(name, plan)
    coordinator, *workers = layout.processes
    assert (coordinator.role, coordinator.slot) == (Role.COORDINATOR, None)
    assert [worker.slot for worker in workers] == [slot.index for slot in plan.slots]
    assert len({spec.ready_port for spec in layout.processes}) == 1 + len(plan.slots)
    assert config(layout, "coordinator")["node-scheduler.include-coordinator"] == "false"
    node_ids = set()
    for spec in layout.processes:
        found = config(layout, spec.name)
        node = read_properties(layout.files[f"{spec.name}/etc/node.properties"], where="")
        assert spec.cwd == spec.name
        assert found["coordinator"] == str(spec is coordinator).lower()
        assert found["http-server.http.port"] == str(spec.ready_port)
        assert found["discovery.uri"] == f"http://127.0.0.1:{coordinator.ready_port}"
        assert node["node.bind-ip"] == node["node.internal-address"] == "127.0.0.1"
        assert node["node.data-dir"].startswith("/var/x/")
        assert f"-Dnode.id={node['node.id']}" in spec.argv
        node_ids.add(node["node.id"])
    assert len(node_ids) == len(layout.processes)
    # A worker with this setting does not start.
    assert "web-ui.enabled" not in config(layout, "worker-0")


@BOTH
def test_the_command_of_a_client_has_no_secret(name: str) -> None:
    layout = lay_out(name, a_plan(name))
    (access,) = layout.access
    (endpoint,) = layout.endpoints
    assert access.address == "http://127.0.0.1:7000"
    user = layout.files.get("user")
    words = {"trino": ' --user "$(cat /run/x/user)"', "presto": ""}[name]
    assert access.command == f"{name} --server http://127.0.0.1:7000{words}"
    assert bool(words) == (user is not None)
    assert f"atoll.engines.sql.shell {name} " in access.remark and endpoint in access.remark
    assert user is None or user not in access.model_dump_json()


@BOTH
def test_heaps_threads_and_memory_are_the_slots(name: str) -> None:
    plan = a_plan(name)
    layout = lay_out(name, plan)
    assert plan.coordinator
    assert f"-Xmx{plan.coordinator.heap_bytes // MIB}m" in flags(layout, "coordinator")
    for slot in plan.slots:
        given, found = flags(layout, f"worker-{slot.index}"), config(layout, f"worker-{slot.index}")
        heap_mib = slot.heap_bytes // MIB
        assert {f"-Xmx{heap_mib}m", f"-Xms{heap_mib}m"} <= set(given)
        assert set(placement_flags(slot, plan)) <= set(given)
        assert found["task.max-worker-threads"] == str(2 * slot.threads)
        used = [found["query.max-memory-per-node"], found["memory.heap-headroom-per-node"]]
        assert 0.98 * heap_mib < sum(map(mib, used)) <= heap_mib, "or the engine does not start"


@pytest.mark.parametrize("edit", [None, {"heap_bytes": 0}])
@BOTH
def test_a_coordinator_starts_for_an_edited_plan_too(name: str, edit: Any) -> None:
    plan = a_plan(name)
    assert plan.coordinator
    coordinator = plan.coordinator.model_copy(update=edit) if edit else None
    layout = lay_out(name, plan.model_copy(update={"coordinator": coordinator}))
    assert {"-Xms1024m", "-Xmx1024m"} <= set(flags(layout, "coordinator"))


def test_all_queries_memory_is_that_of_all_workers() -> None:
    plan = a_plan()
    layout = lay_out("trino", plan)
    each = [
        mib(config(layout, f"worker-{slot.index}")["query.max-memory-per-node"])
        for slot in plan.slots
    ]
    total = mib(config(layout, "coordinator")["query.max-memory"])
    assert sum(each) <= total < sum(each) + len(each)


@pytest.mark.parametrize(("threads", "concurrency"), [(1, 2), (2, 2), (3, 4), (8, 8), (96, 32)])
def test_task_concurrency_is_a_power_of_two(threads: int, concurrency: int) -> None:
    plan = a_plan()
    slot = plan.slots[0].model_copy(update={"threads": threads})
    layout = lay_out("trino", plan.model_copy(update={"slots": (slot,)}))
    for instance in ("coordinator", "worker-0"):
        assert config(layout, instance)["task.concurrency"] == str(concurrency)


@BOTH
def test_secrets_are_fresh_and_in_files_alone(name: str) -> None:
    plan = a_plan(name)
    layout, again = lay_out(name, plan), lay_out(name, plan)
    key = "internal-communication.shared-secret"
    secret = config(layout, "coordinator")[key]
    assert all(config(layout, spec.name)[key] == secret for spec in layout.processes)
    assert secret != config(again, "coordinator")[key]
    told_nobody(secret, layout)


def test_trino_answers_to_one_user_whose_name_is_a_secret() -> None:
    layout, again = lay_out("trino", a_plan()), lay_out("trino", a_plan())
    user = layout.files["user"]
    assert user != again.files["user"]
    told_nobody(user, layout)
    for spec in layout.processes:
        rules = json.loads(layout.files[f"{spec.name}/etc/rules.json"])
        assert {rule["user"] for kind in rules.values() for rule in kind} == {user}


def told_nobody(secret: str, layout: Layout) -> None:
    assert len(secret) >= 32
    for spec in layout.processes:
        assert secret not in " ".join(spec.argv)
        assert secret not in spec.env.values()
    assert not any(secret in endpoint for endpoint in layout.endpoints)


def test_the_endpoint_leads_to_the_user(tmp_path: Any) -> None:
    folder = tmp_path / "a+b %41&c"
    folder.mkdir()
    (folder / "user").write_text("somebody")
    plan, engine = a_plan(), registry.get("trino")
    ports = list(range(7000, 7000 + engine.ports(plan)))
    layout = engine.layout(plan, INSTALLED, run_dir=str(folder), ports=ports)
    address = parse_endpoint(layout.endpoints[0])
    assert (address.user, address.catalog, address.schema) == ("somebody", "atoll", "suite")
    with fails(EngineFailed, path=tmp_path / "none", why="No such file or directory"):
        parse_endpoint(f"http://127.0.0.1:7000/a/b?user-file={tmp_path}/none")


def test_presto_finds_an_agent_of_jmx_that_nobody_gets_into() -> None:
    layout = lay_out("presto", a_plan("presto"))
    for spec in layout.processes:
        said = "-Dcom.sun.management.jmxremote."
        jmx = dict(
            word.removeprefix(said).split("=") for word in spec.argv if word.startswith(said)
        )
        assert (jmx["host"], jmx["port"]) == ("127.0.0.2", str(spec.ready_port))
        assert jmx["authenticate"] == "true"
        assert layout.files[f"{spec.name}/{jmx['password.file']}"] == ""
        assert layout.files[f"{spec.name}/{jmx['access.file']}"] == ""
        assert config(layout, spec.name)["thrift.server.max-frame-size"] == "1B"


# ---- on the network ------------------------------------------------------------------------------


def on_network(name: str) -> Plan:
    return listening(a_plan(name), coordinator="10.0.0.5", slots=("10.0.0.5", "10.0.1.5"))


@BOTH
def test_each_instance_listens_where_the_plan_says(name: str) -> None:
    plan = on_network(name)
    layout = lay_out(name, plan)
    for spec in layout.processes:
        node = read_properties(layout.files[f"{spec.name}/etc/node.properties"], where="")
        address = plan.slots[spec.slot].address if spec.slot is not None else "10.0.0.5"
        assert node["node.bind-ip"] == node["node.internal-address"] == address
        assert (spec.ready_address, f"-Dnode.bind-ip={address}" in spec.argv) == (address, True)
        found = config(layout, spec.name)
        assert found["discovery.uri"].startswith("http://10.0.0.5:")
        assert len(found["internal-communication.shared-secret"]) == 64
    assert {spec.ready_address for spec in layout.processes} == {"10.0.0.5", "10.0.1.5"}
    assert layout.endpoints[0].startswith("http://10.0.0.5:")
    # It would let anyone on the network read the files of the engine's account.
    assert not any(path.endswith("/atoll.properties") for path in layout.files)


def test_authentication_is_not_switched_off_on_a_network() -> None:
    tree = a_tree(config_properties="http-server.authentication.type=PASSWORD\n")
    lay_out("trino", a_plan(), tree)
    with fails(UsageError, file="/etc/trino/config.properties"):
        lay_out("trino", on_network("trino"), tree)
