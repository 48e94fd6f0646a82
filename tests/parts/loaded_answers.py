"""Answers of an engine that keeps its tables itself, through real deployments.

    python -m tests.parts.loaded_answers ENGINE SCALE_FACTOR [POLICY=QUERIES...]

Loads, and answers under each policy; with 'hold' in their place it stops in the middle of loading.
A process of its own, because such servers refuse root (`ORDINARY_USER`). Says as JSON, by policy,
how many instances there were, which answers of any of them were wrong, what verify found and what
was left behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from atoll.engines import registry
from atoll.engines.api import Engine, LoadingEngine
from atoll.engines.calls import holding
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.suites.base import DataSet
from atoll.suites.selection import select_queries
from atoll.supervise.launch import launch
from tests.parts.answers import HEAPS_BYTES, TPCH, data_at, difference
from tests.parts.deployment import left_over

MOST_INSTANCES = 2


def answers(engine: Engine, data: DataSet, policy: str, queries: Sequence[str]) -> dict[str, Any]:
    machine, name = read_machine(), engine.traits.name
    count = min(MOST_INSTANCES, len(machine.allowed_cores)) if policy == "wic" else None
    plan = make_plan(machine, engine.traits, policy, count=count, heap_limit_bytes=HEAPS_BYTES)
    wrong: list[str] = []
    with launch(plan, engine, machine=machine, host=LocalHost(), name=f"answers-{name}") as running:
        record = running.deployment
        for number, client in enumerate(running.clients):
            for query in queries:
                said = difference(client, name, query, data)
                if said:
                    wrong.append(f"{query} of instance {number}: {said}")
        drift = [str(finding) for finding in running.verify().drift]
    folders = [folder for folder in (record.run_dir, record.scratch_dir) if os.path.exists(folder)]
    return {
        "instances": len(plan.slots),
        "asked": len(queries),
        "wrong": wrong,
        "drift": drift,
        "left": [*left_over(record.name), *folders],
    }


def tell(what: str, part: float | None) -> None:
    print(what, file=sys.stderr, flush=True)


def hold(what: str, part: float | None) -> None:
    """In the middle of loading, until it is killed."""
    tell(what, part)
    if "loading" in what:
        signal.pause()


def main() -> None:
    name, scale_factor, *wishes = sys.argv[1:]
    progress = hold if wishes == ["hold"] else tell
    engine, data = registry.get(name), data_at(float(scale_factor))
    assert isinstance(engine, LoadingEngine)
    host = LocalHost()
    engine.load(data.data, engine.locate(host), host=host, progress=progress)
    found = {}
    for policy, _, asked in (wish.partition("=") for wish in wishes):
        queries = select_queries(asked, TPCH.query_names)
        found[policy] = answers(holding(engine, data.data), data, policy, queries)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
