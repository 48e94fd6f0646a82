"""What Trino and Presto are told: places, heaps, secrets; a user's tree; URLs; where found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from atoll.engines import registry
from atoll.engines.base import (
    Base,
    BasedEngine,
    Installation,
    Layout,
    RemoteEngine,
    StandingEngine,
    Table,
)
from atoll.engines.base import Column as TableColumn
from atoll.engines.settings import read_flags, read_properties
from atoll.engines.trino_address import parse_endpoint, parse_url
from atoll.engines.trino_client import TrinoClient
from atoll.engines.trino_parts import find_home
from atoll.errors import EngineFailed, UsageError
from atoll.host.fake import FakeHost
from atoll.plan import make_plan
from atoll.plan.jvm import placement_flags
from atoll.schema.deployment import Role
from atoll.schema.plan import Plan
from tests.unit.machines import milan

BOTH = pytest.mark.parametrize("name", ["trino", "presto"])
INSTALLED = Installation("476", "/opt/engine", "/opt/jdk/bin/java", "25.0.2")
MIB = 1 << 20


def a_plan(name: str = "trino", policy: Any = "wicp") -> Plan:
    return make_plan(milan(2), registry.get(name).traits, policy)


def lay_out(name: str, plan: Plan, base: Base | None = None) -> Layout:
    engine = registry.get(name)
    if base:
        assert isinstance(engine, BasedEngine)
        engine = engine.on(base)
    ports = range(7000, 7000 + engine.ports(plan))
    return engine.layout(plan, INSTALLED, run_dir="/run/x", ports=list(ports), scratch_dir="/var/x")


def config(layout: Layout, instance: str) -> dict[str, str]:
    return read_properties(layout.files[f"{instance}/etc/config.properties"], where="")


def flags(layout: Layout, instance: str) -> list[str]:
    return read_flags(layout.files[f"{instance}/etc/jvm.config"], where="")


def mib(text: str) -> int:
    return int(text.removesuffix("MB"))


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
    with pytest.raises(EngineFailed, match="cannot be read"):
        parse_endpoint(f"http://127.0.0.1:7000/a/b?user-file={tmp_path}/none")


# ---- a user's tree


def a_base(**texts: str) -> Base:
    given = {name.replace("__", "/").replace("_", "."): text for name, text in texts.items()}
    given.setdefault("config.properties", "coordinator=true\n")
    return Base(root="/etc/trino", texts=given, others=("keystore.jks",))


def test_a_users_tree_is_kept_but_for_placement() -> None:
    base = a_base(
        config_properties=(
            "# ours\ncoordinator=true\nhttp-server.http.port=8080\nquery.max-run-time=1h\n"
            "http-server.https.enabled=true\nhttp-server.https.port=8443\n"
            "http-server.https.keystore.path=etc/keystore.jks\n"
            "http-server.authentication.type=PASSWORD\n"
        ),
        node_properties="node.environment=production\nnode.id=abc\n",
        jvm_config="-server\n-Xmx54G\n-XX:G1HeapRegionSize=32M\n",
        catalog__hive_properties="connector.name=hive\n",
    )
    plan = a_plan()
    layout = lay_out("trino", plan, base)
    coordinator, worker = config(layout, "coordinator"), config(layout, "worker-0")
    assert layout.files["coordinator/etc/config.properties"].startswith("# ours\n")
    assert coordinator["query.max-run-time"] == worker["query.max-run-time"] == "1h"
    assert coordinator["http-server.https.keystore.path"] == "etc/keystore.jks"
    assert coordinator["http-server.https.port"] == str(7000 + 1 + len(plan.slots))
    assert coordinator["http-server.authentication.type"] == "PASSWORD"
    assert not any(key.startswith("http-server.https") for key in worker)
    assert layout.copies["worker-0/etc/keystore.jks"] == "/etc/trino/keystore.jks"
    assert layout.files["worker-1/etc/catalog/hive.properties"] == "connector.name=hive\n"
    assert "-XX:G1HeapRegionSize=32M" in flags(layout, "worker-0")
    assert "-Xmx54G" not in flags(layout, "worker-0")
    node = read_properties(layout.files["worker-0/etc/node.properties"], where="")
    assert (node["node.environment"], node["node.id"]) == ("production", "worker-0")
    assert coordinator["plugin.dir"] == "/opt/engine/plugin", "its catalogs may want any"
    assert "access-control.properties" not in str(layout.files)


COORDINATORS_OWN = """\
catalog.store=file
cluster.required-workers-active=20
discovery-server.enabled=true
event.max-output-stage-size=1MB
failure-detector.enabled=false
oauth2-jwk.http-client.connect-timeout=1s
password-authenticator.config-files=a,b
scheduler.http-client.idle-timeout=1m
transaction.idle-timeout=1h
web-ui.enabled=true
"""


@BOTH
def test_a_worker_is_not_told_what_it_takes_for_an_error(name: str) -> None:
    kept = "event-listener.config-files=etc/l.properties\nquery.max-run-time=1h\n"
    layout = lay_out(name, a_plan(name), a_base(config_properties=COORDINATORS_OWN + kept))
    worker, coordinator = config(layout, "worker-0"), config(layout, "coordinator")
    theirs = read_properties(COORDINATORS_OWN, where="")
    assert not set(theirs) & set(worker)
    assert set(theirs) - set(coordinator) == {"cluster.required-workers-active"}
    assert set(read_properties(kept, where="")) <= set(worker)


@BOTH
def test_instances_share_no_port_no_log_and_no_spill_folder(name: str) -> None:
    base = a_base(
        config_properties=(
            "jmx.rmiregistry.port=9080\njmx.rmiserver.port=9081\nlog.path=/var/log/s.log\n"
            "log.enable-console=false\nquery-manager.required-workers=20\n"
            "spiller-spill-path=/a,/b\n"
        )
    )
    layout = lay_out(name, a_plan(name), base)
    folders = set()
    for spec in layout.processes:
        found = config(layout, spec.name)
        assert not [key for key in found if key.startswith(("jmx.", "log.", "query-manager."))]
        folders.add(found["spiller-spill-path"])
    assert "/var/x/worker-0/spill" in folders
    assert len(folders) == len(layout.processes)


MACHINE_WIDE = """\
-Dcom.sun.management.jmxremote.port=9010
-Dcom.sun.management.jmxremote.rmi.port=9010
-XX:ActiveProcessorCount=96
-XX:ParallelGCThreads=48
-Xlog:gc*:file=/var/log/gc.log:time
-Xlog:gc:gc.log
-Xmn100G
-agentlib:jdwp=transport=dt_socket,server=y,address=5005
"""


def test_a_jvm_is_told_nothing_of_the_whole_machine() -> None:
    kept = ["-Xlog:gc*:stdout:time", "-Xlog:gc", "-XX:NewRatio=2", "-Dcom.sun.management.x=1"]
    base = a_base(jvm_config=MACHINE_WIDE + "\n".join(kept) + "\n")
    plan = a_plan()
    layout = lay_out("trino", plan, base)
    for spec in layout.processes:
        given = flags(layout, spec.name)
        assert not set(MACHINE_WIDE.splitlines()) & set(given)
        assert set(kept) <= set(given)
    counts = [flag for flag in flags(layout, "worker-0") if "ActiveProcessorCount" in flag]
    assert counts == [f"-XX:ActiveProcessorCount={plan.slots[0].threads}"]


@BOTH
def test_a_users_flags_are_on_no_command_line(name: str) -> None:
    base = a_base(
        jvm_config='-server\n-javaagent:/a.jar=licence:hunter2\n-Dx="y\\z"\n',
        node_properties="node.environment=p\nx.y=hunter2\n",
    )
    layout = lay_out(name, a_plan(name), base)
    for spec in layout.processes:
        java, arguments, *rest = spec.argv
        assert (java, arguments) == (INSTALLED.java, f"@/run/x/{spec.name}/java.args")
        assert "hunter2" not in " ".join(rest)
        told = layout.files[f"{spec.name}/java.args"].splitlines()
        assert told[:3] == ['"-server"', '"-javaagent:/a.jar=licence:hunter2"', r'"-Dx=\"y\\z\""']
        assert {f'"-Dnode.id={spec.name}"', '"-Dx.y=hunter2"'} <= set(told)
        assert {f'"{flag}"' for flag in flags(layout, spec.name)[3:]} <= set(told)


@BOTH
def test_a_users_cluster_that_outlives_atoll_gets_no_catalog_of_all_files(name: str) -> None:
    engine, plan = registry.get(name), a_plan(name)
    assert isinstance(engine, BasedEngine)
    engine = engine.on(a_base())
    assert isinstance(engine, StandingEngine)
    for each, has_it in ((engine, True), (engine.standing(), False)):
        ports = list(range(7000, 7000 + engine.ports(plan)))
        files = each.layout(plan, INSTALLED, run_dir="/run/x", ports=ports).files
        assert ("worker-0/etc/catalog/atoll.properties" in files) is has_it


@pytest.mark.parametrize(("name", "told"), [("trino", True), ("presto", False)])
def test_only_trino_must_be_told_to_answer_over_http(name: str, told: bool) -> None:
    base = a_base(config_properties="http-server.authentication.type=PASSWORD\n")
    key = "http-server.authentication.allow-insecure-over-http"
    assert (key in config(lay_out(name, a_plan(name), base), "coordinator")) is told


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"config_properties": "coordinator\n"}, r"/etc/trino/config.properties:1"),
        ({"jvm_config": "-server\nXmx4G\n"}, r"/etc/trino/jvm.config:2"),
        ({"catalog__h_properties": "a=1\n=2\n"}, r"/etc/trino/catalog/h.properties:2"),
    ],
)
@BOTH
def test_a_syntax_error_is_told_with_its_line(name: str, texts: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        lay_out(name, a_plan(name), a_base(**texts))


def test_a_folder_that_is_no_tree_is_refused() -> None:
    with pytest.raises(UsageError, match=r"/x/config.properties is not there"):
        lay_out("trino", a_plan(), Base(root="/x", texts={"a": ""}))


# ---- clients, tables, homes


@pytest.mark.parametrize(
    ("url", "place", "user", "catalog"),
    [
        ("http://h/hive", "http://h:8080", None, "hive"),
        ("https://ann:s%40c@h:8443/hive/tpch", "https://h:8443", "ann", "hive"),
        ("https://h", "https://h:443", None, None),
        ("http://[::1]:99", "http://[::1]:99", None, None),
    ],
)
def test_urls(url: str, place: str, user: str | None, catalog: str | None) -> None:
    address = parse_url(url)
    assert (address.place, address.catalog) == (place, catalog)
    assert user is None or (address.user, address.password) == (user, "s@c")


@pytest.mark.parametrize(
    "url",
    ["ftp://u:hidden@h", "http://u:hidden@h", "https://u:hidden@h/a/b/c", "https://u:hidden@h:x"],
)
@BOTH
def test_what_is_no_url_is_refused_without_its_password(name: str, url: str) -> None:
    engine = registry.get(name)
    assert isinstance(engine, RemoteEngine)
    with pytest.raises(UsageError) as caught:
        engine.reach(url, timeout_s=1)
    assert "hidden" not in str(caught.value)


def test_nobody_at_the_url_is_one_line_without_the_password() -> None:
    with pytest.raises(
        EngineFailed, match=r"https://127.0.0.1:1 is gone \(Connection refused\)"
    ) as caught:
        TrinoClient(parse_url("https://u:hidden@127.0.0.1:1")).execute("select 1", timeout_s=5)
    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)


@BOTH
def test_a_table_is_the_folder_of_its_file(name: str) -> None:
    columns = (TableColumn("a", "bigint"), TableColumn("b", "decimal(15,2)"))
    statements = registry.get(name).attach(Table("t", "/it's/t/t.parquet", columns))
    (create,) = [each for each in statements if each.startswith("create table")]
    assert "(a bigint, b decimal(15,2))" in create
    assert "///it''s/t'" in create


def home_of(names: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.setenv("TRINO_HOME", "/opt/mine")
    host = FakeHost({f"/opt/mine/lib/{name}": "" for name in names})
    return find_home(host, "trino", "476", jar="io.trino_trino-main")


def test_a_home_of_that_version_or_later_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    jars = ["a.jar", "io.trino_trino-main-480.jar"]
    assert home_of(jars, monkeypatch) == ("480", "/opt/mine")


@pytest.mark.parametrize(
    ("jar", "said"),
    [("io.trino_trino-main-400.jar", "/opt/mine is 400"), ("x.jar", "/opt/mine is no trino")],
)
def test_another_home_is_named_with_what_to_install(
    jar: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.engines.trino_parts.installed", lambda name: "")
    with pytest.raises(EngineFailed, match=f"{said}; install it with: atoll engine install trino"):
        home_of([jar], monkeypatch)
