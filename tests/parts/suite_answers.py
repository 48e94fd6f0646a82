"""All answers of a suite by one engine, through a real deployment.

    python -m tests.parts.suite_answers ENGINE SUITE SCALE_FACTOR [QUERIES]

A process of its own, because some servers refuse root (`ORDINARY_USER`). Says as JSON how many
answers were right, which were wrong, which queries failed and why, and which queries ran although
the engine's dialect lists them as impossible.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field

import pytest

from atoll.engines import registry
from atoll.engines.api import Client, Engine, LoadingEngine
from atoll.engines.calls import holding
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.suites import registry as suites
from atoll.suites.base import DataSet, Suite
from atoll.suites.compare import compare
from atoll.suites.dialects import dialect_of
from atoll.suites.selection import select_queries
from atoll.supervise.launch import Running, launch
from tests.parts.answers import HEAPS_BYTES, QUERY_LIMIT_S

NOT_INSTALLED = 5


@dataclass
class Told:
    right: int = 0
    wrong: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    possible: list[str] = field(default_factory=list)  # though listed as impossible


def ask_all(running: Running, engine: Engine, suite: Suite, data: DataSet, asked: str) -> Told:
    name, (client, *_) = engine.traits.name, running.clients
    texts, told = suite.queries(name), Told()
    for query in select_queries(asked, suite.query_names):
        if query not in texts:
            continue
        expected = suite.expected(query, data)
        began = time.monotonic()
        try:
            result = client.execute(texts[query], timeout_s=QUERY_LIMIT_S)
        except EngineFailed as fault:
            told.failed[query] = str(fault)
            (client, *_) = engine.connect(running.deployment.endpoints, timeout_s=60)
        else:
            said = compare(result, expected)
            told.wrong |= {query: said} if said else {}
            told.right += not said
        print(f"{query}: {time.monotonic() - began:.2f} s", file=sys.stderr, flush=True)
    told.possible = _possible(client, engine, suite, running, asked)
    return told


def _possible(
    client: Client, engine: Engine, suite: Suite, running: Running, asked: str
) -> list[str]:
    """The queries that run although they are listed as impossible, but for the order of NULLs."""
    found = []
    standard = suite.queries("duckdb")
    for query in dialect_of(engine.traits.name, suite.name).cannot:
        if query not in select_queries(asked, suite.query_names):
            continue
        text = re.sub(r"\s+nulls\s+(first|last)", "", standard[query], flags=re.IGNORECASE)
        try:
            client.execute(text, timeout_s=QUERY_LIMIT_S)
            found.append(query)
        except EngineFailed:
            (client, *_) = engine.connect(running.deployment.endpoints, timeout_s=60)
    return found


def ask_in_a_process(
    run_as: tuple[str, ...], engine: str, suite: str, scale_factor: float, asked: str = ""
) -> Told:
    """Skips if the engine is not installed."""
    command = [*run_as, sys.executable, "-m", __name__, engine, suite, f"{scale_factor:g}", asked]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == NOT_INSTALLED:
        pytest.skip(f"{engine} is not installed")
    assert done.returncode == 0
    return Told(**json.loads(done.stdout))


def main() -> int:
    name, suite_name, scale_factor, asked = (*sys.argv[1:], "")[:4]
    host, machine = LocalHost(), read_machine()
    engine, suite = registry.get(name), suites.get(suite_name)
    try:
        installation = engine.locate(host)
    except EngineFailed as fault:
        print(fault, file=sys.stderr)
        return NOT_INSTALLED
    data = suite.ensure_data(float(scale_factor), host=host, progress=lambda what, part: None)
    if isinstance(engine, LoadingEngine):
        engine.load(data.data, installation, host=host, progress=lambda what, part: None)
        engine = holding(engine, data.data)
    plan = make_plan(machine, engine.traits, "wic", count=1, heap_limit_bytes=HEAPS_BYTES)
    with launch(plan, engine, machine=machine, host=host, name=f"suite-{name}") as running:
        for table in data.tables:
            for statement in engine.attach(table):
                running.clients[0].execute(statement, timeout_s=QUERY_LIMIT_S)
        told = ask_all(running, engine, suite, data, asked)
    print(json.dumps(asdict(told)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
