"""What a user's configuration takes beside the heaps is planned with: a plan never exceeds the
machine's memory, whatever `--base` asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.cli import run
from atoll.engines import registry
from atoll.engines.api import ConfigurableEngine
from atoll.engines.userconfig.tree import UserTree
from atoll.errors import UsageError
from atoll.plan import make_plan
from atoll.plan.capacity import check_room, room_bytes
from atoll.schema.plan import EngineTraits, Plan, Policy
from tests.parts.faults import fails
from tests.parts.machines import GIB, MIB, NodeShape, build, milan
from tests.parts.plan import shapes

SMALL = milan(2, memory_gib=128)  # 16 GiB a chiplet
OFF_HEAP = "spark.memory.offHeap.enabled true\nspark.memory.offHeap.size 8g\n"


def spark(text: str) -> EngineTraits:
    return on("spark", {"spark-defaults.conf": text})


def on(name: str, texts: dict[str, str]) -> EngineTraits:
    engine = registry.get(name)
    assert isinstance(engine, ConfigurableEngine)
    return engine.on(UserTree("/etc/x", texts)).traits


def taken(plan: Plan, beside: int, coordinator: int) -> int:
    """Heaps, what was asked for beside each, and the coordinator."""
    assert plan.coordinator is not None
    heaps = sum(slot.heap_bytes + beside for slot in plan.slots)
    return heaps + plan.coordinator.heap_bytes + coordinator


@given(
    shapes,
    st.sampled_from(Policy),
    st.one_of(st.none(), st.integers(1, 12)),
    *[st.one_of(st.just(0), st.integers(1, 40_000)) for _ in range(5)],
    st.floats(0, 2),
)
@settings(max_examples=150, deadline=None)
def test_a_plan_with_sparks_memory_never_exceeds_the_machine(
    shape: list[list[NodeShape]],
    policy: Policy,
    count: int | None,
    off_heap: int,
    python: int,
    overhead: int,
    direct: int,
    driver: int,
    factor: float,
) -> None:
    lines = [
        "spark.memory.offHeap.enabled TRUE",
        f"spark.memory.offHeap.size {off_heap}m",
        f"spark.executor.memoryOverheadFactor {factor}",
        f"spark.executor.extraJavaOptions -XX:MaxDirectMemorySize={direct << 10}K",
    ]
    lines += [f"spark.executor.pyspark.memory {python}"] if python else []
    lines += [f"spark.executor.memoryOverhead {overhead}MB"] if overhead else []
    lines += [f"spark.driver.memory {driver}m"] if driver else []
    machine = build(shape)
    try:
        plan = make_plan(machine, spark("\n".join(lines) + "\n"), policy, count=count)
    except UsageError:
        return  # refused, so nothing is exceeded
    assert plan.coordinator is not None
    assert plan.coordinator.heap_bytes == (driver or 1024) * MIB
    beside = (off_heap + python + max(overhead, direct)) * MIB
    assert taken(plan, beside, 0) <= sum(node.memory_bytes for node in machine.nodes)
    for slot in plan.slots:
        grows = 0 if overhead else int(factor * slot.heap_bytes)
        assert slot.heap_bytes + beside + grows <= slot.memory_bytes


@pytest.mark.parametrize("name", ["trino", "presto"])
@given(shapes, st.sampled_from(Policy), st.integers(0, 40_000))
@settings(max_examples=60, deadline=None)
def test_a_plan_with_direct_memory_never_exceeds_the_machine(
    name: str, shape: list[list[NodeShape]], policy: Policy, direct: int
) -> None:
    flags = f"-Xmx400G\n-XX:MaxDirectMemorySize=1g\n-XX:MaxDirectMemorySize={direct}m\n"
    traits = on(name, {"config.properties": "a=b\n", "jvm.config": flags})
    machine = build(shape)
    try:
        plan = make_plan(machine, traits, policy)
    except UsageError:
        return
    # Every process gets it, the coordinator too.
    whole = sum(node.memory_bytes for node in machine.nodes)
    assert taken(plan, direct * MIB, direct * MIB) <= whole


@given(shapes, st.sampled_from(Policy), st.integers(0, 40_000), st.integers(0, 40_000))
@settings(max_examples=60, deadline=None)
def test_a_plan_with_a_servers_buffers_never_exceeds_the_machine(
    shape: list[list[NodeShape]], policy: Policy, keys: int, pages: int
) -> None:
    text = f"[mariadbd]\nkey_buffer_size={keys}M\n"
    text += f"[mariadb-10.11]\naria-pagecache-buffer-size={pages}M\n"
    traits = on("mariadb", {"my.cnf": text})
    machine = build(shape)
    try:
        plan = make_plan(machine, traits, policy)
    except UsageError:
        return
    beside = (max(0, keys - 128) + max(0, pages - 128)) * MIB
    whole = sum(node.memory_bytes for node in machine.nodes)
    assert sum(slot.heap_bytes + beside for slot in plan.slots) <= whole


@pytest.mark.parametrize(
    ("name", "text", "size_bytes", "source"),
    [
        ("postgresql", "wal_buffers = 64\n", 64 * 8192, "wal_buffers"),
        ("postgresql", "wal_buffers = '1.5GB'\n", 3 * GIB // 2, "wal_buffers"),
        ("postgresql", "wal_buffers = -1\nwork_mem = 1GB\n", 0, ""),
        ("postgresql", "autovacuum_work_mem = 524288\n", 3 * GIB // 2, "autovacuum_work_mem"),
        (
            "postgresql",
            "autovacuum_work_mem = 8GB\nautovacuum_max_workers = 5\n",
            5 * GIB,
            "autovacuum_work_mem",
        ),
        (
            "postgresql",
            "autovacuum_work_mem = -1\nmaintenance_work_mem = 100MB\n",
            300 * MIB,
            "maintenance_work_mem",
        ),
        ("mariadb", "[server]\nkey_buffer_size = 2g\n", 2 * GIB - 128 * MIB, "key_buffer_size"),
        ("mariadb", "[client]\nkey_buffer_size = 2g\n", 0, ""),
        ("mariadb", "[mysqld]\nquery_cache_size = much\nkey_buffer_size = 8M\n", 0, ""),
    ],
)
def test_a_servers_buffers_are_counted_as_it_reads_them(
    name: str, text: str, size_bytes: int, source: str
) -> None:
    traits = on(name, {{"postgresql": "postgresql.conf", "mariadb": "my.cnf"}[name]: text})
    assert traits.asked_bytes == size_bytes
    assert traits.asked_source == (f"/etc/x ({source})" if source else "")


@pytest.mark.parametrize(
    ("size", "size_bytes"),
    [("1073741824", GIB), ("2g", 2 * GIB), ("512MB", 512 * MIB), ("8388608kb", 8 * GIB), ("7B", 7)],
)
def test_sizes_are_read_as_spark_reads_them(size: str, size_bytes: int) -> None:
    text = f"spark.memory.offHeap.enabled true\nspark.memory.offHeap.size {size}\n"
    assert spark(text).asked_bytes == size_bytes
    assert spark(f"spark.memory.offHeap.size {size}\n").asked_bytes == 0, "it is not enabled"


def test_queries_have_the_off_heap_memory_and_the_users_fraction_of_the_heap() -> None:
    text = "spark.memory.offHeap.enabled true\nspark.memory.offHeap.size 4g\n"
    traits = spark(text + "spark.memory.fraction 0.5\n")
    assert room_bytes(8 * GIB + 300 * MIB, traits) == 8 * GIB


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.executor.pyspark.memory", "1.5g"),
        ("spark.driver.memory", "${env:DRIVER}"),
        ("spark.executor.memoryOverheadFactor", "much"),
        ("spark.memory.fraction", "nan"),
    ],
)
def test_a_size_that_cannot_be_read_is_refused_by_its_name(name: str, value: str) -> None:
    with fails(UsageError, where="/etc/x/spark-defaults.conf", name=name, value=value):
        spark(f"{name} {value}\n")


def test_direct_memory_that_cannot_be_read_is_refused() -> None:
    flag = "-XX:MaxDirectMemorySize=big"
    with fails(UsageError, where="/etc/x/spark-defaults.conf", flag=flag):
        spark(f"spark.executor.defaultJavaOptions {flag}\n")


def test_too_much_beside_the_heaps_is_refused_with_its_source() -> None:
    traits = spark("spark.memory.offHeap.enabled true\nspark.memory.offHeap.size 100g\n")
    machine = build([[NodeShape((), 4, 64)]])
    source = {"path": "/etc/x/spark-defaults.conf", "setting": "spark.memory.offHeap.size"}
    with fails(UsageError, asked="100 GiB", **source):
        make_plan(machine, traits, "wim")
    large = build([[NodeShape((), 4, 256)]])
    with fails(UsageError, asked="100 GiB", fitting="-n 2", **source):
        make_plan(large, traits, "wic")
    reserved = next(
        reason for reason in make_plan(large, traits, "wim").reasons if reason.rule == "reserved"
    )
    assert "100 GiB for /etc/x/spark-defaults.conf" in reserved.text


def test_a_plan_file_that_was_made_without_the_configuration_is_refused() -> None:
    ours, theirs = registry.get("spark").traits, spark(OFF_HEAP)
    check_room(make_plan(SMALL, ours, "wicp"), ours)
    check_room(make_plan(SMALL, theirs, "wicp"), theirs)
    with fails(UsageError, slot="slot 0", needed="8 GiB", command="atoll plan spark --base DIR"):
        check_room(make_plan(SMALL, ours, "wicp"), theirs)


def test_a_plan_file_whose_heap_was_raised_is_refused_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.cli.measuring.machine_for", lambda *_, **__: SMALL)
    plan = make_plan(SMALL, registry.get("duckdb").traits, "wim")
    (slot,) = plan.slots
    raised = slot.model_copy(update={"heap_bytes": slot.memory_bytes})
    path = tmp_path / "plan.json"
    path.write_text(plan.model_copy(update={"slots": (raised,)}).model_dump_json())
    for command in (["up"], ["render", "-o", str(tmp_path / "x")], ["bench", "--sf", "0.01"]):
        assert run([*command, str(path)]) == 2
        assert "make a new plan: atoll plan duckdb -o PLAN" in capsys.readouterr().err


def test_every_command_plans_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("plan", "render", "up", "measuring"):
        monkeypatch.setattr(f"atoll.cli.{module}.machine_for", lambda *_, **__: SMALL)
    base = tmp_path / "conf"
    base.mkdir()
    (base / "spark-defaults.conf").write_text(OFF_HEAP)
    options = ["spark", "--base", str(base), "--policy", "wicp"]
    plain, based = heap_of(["spark", "--policy", "wicp"], capsys), heap_of(options, capsys)
    assert plain - based > 16 * 4 * GIB
    out = tmp_path / "out"
    assert run(["render", *options, "-o", str(out)]) == 0
    rendered = Plan.model_validate_json((out / "plan.json").read_text())
    assert rendered.total_heap_bytes == based
    plan = tmp_path / "plan.json"
    assert run(["plan", "spark", "--policy", "wicp", "-o", str(plan)]) == 0
    for command in (["up"], ["render", "-o", str(tmp_path / "x")], ["bench", "--sf", "0.01"]):
        assert run([*command, str(plan), "--base", str(base)]) == 2
        assert "8 GiB of it for " in capsys.readouterr().err


def heap_of(options: list[str], capsys: pytest.CaptureFixture[str]) -> int:
    capsys.readouterr()
    assert run(["plan", *options, "--json"]) == 0
    found: int = json.loads(capsys.readouterr().out)["total_heap_bytes"]
    return found
