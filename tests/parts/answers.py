"""What the answer tests of all engines share: a deployment that is up, and one query checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from atoll.engines import registry
from atoll.engines.api import Client
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.plan.coordinator import CoordinatorChoice
from atoll.schema.plan import MemoryPolicy
from atoll.suites import registry as suites
from atoll.suites.base import DataSet
from atoll.suites.compare import compare
from atoll.supervise.launch import Running, launch

TPCH = suites.get("tpch")
# For engines that take seconds to plan a query: each kind of join, a subquery, and every table.
SOME_OF_TPCH = ("q2", "q9", "q13", "q16", "q18", "q21", "q22")
QUERY_LIMIT_S = 300.0
# Enough for SF 1, and little enough for two executors beside whatever else a test machine runs.
HEAPS_BYTES = 2048 << 20


@contextmanager
def deployed(
    engine_name: str,
    *,
    instances: int,
    memory: MemoryPolicy | None = None,
    coordinator: CoordinatorChoice | None = None,
) -> Iterator[Running]:
    """The engine, up on as many slots as `atoll up` would; skips if the engine is not available."""
    engine = registry.get(engine_name)
    host = LocalHost()
    try:
        engine.locate(host)
    except EngineFailed as fault:
        pytest.skip(str(fault))
    machine = read_machine()
    count = min(instances, len(machine.allowed_cores))
    plan = make_plan(
        machine,
        engine.traits,
        "wic",
        count=count,
        heap_limit_bytes=HEAPS_BYTES,
        memory=memory,
        coordinator=coordinator,
    )
    with launch(plan, engine, machine=machine, host=host, name=f"answers-{engine_name}") as running:
        yield running


def data_at(scale_factor: float) -> DataSet:
    return TPCH.ensure_data(scale_factor, host=LocalHost(), progress=lambda what, part: None)


def attach(client: Client, engine_name: str, data: DataSet) -> None:
    engine = registry.get(engine_name)
    for table in data.tables:
        for statement in engine.attach(table):
            client.execute(statement, timeout_s=QUERY_LIMIT_S)


def difference(client: Client, engine_name: str, query: str, data: DataSet) -> str | None:
    """None if the engine answers the query rightly."""
    result = client.execute(TPCH.queries(engine_name)[query], timeout_s=QUERY_LIMIT_S)
    return compare(result, TPCH.expected(query, data))
