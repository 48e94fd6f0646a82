"""DuckDB's layout: threads, memory, and whose scheduler runs its tasks."""

from __future__ import annotations

import json

from atoll.engines import registry
from atoll.engines.api import Installation, ScheduledEngine, Table
from atoll.plan import make_plan
from tests.parts.machines import milan


def test_each_slot_is_a_server_whose_own_pinning_is_off() -> None:
    engine = registry.get("duckdb")
    plan = make_plan(milan(1), engine.traits, "win", count=3)
    layout = engine.layout(
        plan, Installation("1.5.5", "x"), run_dir="/run/x", ports=(), scratch_dir="/var/x"
    )
    assert engine.ports(plan) == 0
    assert len(set(layout.endpoints)) == len(layout.processes) == 3
    for spec, slot in zip(layout.processes, plan.slots, strict=True):
        config = json.loads(layout.files[f"duckdb-{slot.index}.json"])
        assert spec.slot == slot.index
        assert config["pin_threads"] == "off"
        assert config["threads"] == slot.threads
        assert config["memory_limit"] == f"{slot.heap_bytes}B"
        assert config["temp_directory"].startswith("/var/x/")


def test_only_the_backend_and_pinning_differ_under_atolls_scheduler() -> None:
    own = registry.get("duckdb")
    assert isinstance(own, ScheduledEngine)
    assert own.schedulers == ("duckdb", "atoll")
    plan = make_plan(milan(1), own.traits, "win", count=2)
    layouts = [
        engine.layout(plan, Installation("1.5.5", "x"), run_dir="/run/x", ports=())
        for engine in (own, own.under("duckdb"), own.under("atoll"))
    ]
    assert layouts[0] == layouts[1]
    for plain, atoll in zip(layouts[0].processes, layouts[2].processes, strict=True):
        assert not plain.seats_threads and atoll.seats_threads
        assert any(word.endswith(":DuckDBBackend") for word in plain.argv)
        assert any(word.endswith(":AtollBackend") for word in atoll.argv)
        assert plain.model_copy(update={"argv": (), "seats_threads": True}) == atoll.model_copy(
            update={"argv": ()}
        )
    config, mine = (json.loads(layout.files["duckdb-1.json"]) for layout in layouts[1:])
    assert config == {**mine, "pin_threads": "off"}


def test_a_quote_in_a_path_stays_in_its_string() -> None:
    (statement,) = registry.get("duckdb").attach(Table("t", "/a/it's.parquet", ()))
    assert "/a/it''s" in statement
