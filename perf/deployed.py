"""An engine with data, as the bench brings up its entrants, whose own client can be asked too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from atoll.bench.deploy import Deployer, LiveServer
from atoll.engines import registry
from atoll.engines.api import LoadingEngine
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.schema.results import Entrant
from atoll.suites.base import DataSet
from perf.datasets import quiet
from perf.engines_host import BACKENDS, Hosted

HEAP_BYTES = 2 << 30


@contextmanager
def hosted(name: str, data: DataSet) -> Iterator[LiveServer]:
    """An engine with the data, as the only entrant of a bench; an engine of BACKENDS in a host of
    `perf.engines_host`. Raises EngineFailed where it cannot be had."""
    # The SQL host with both ways in is in this package.
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
    host, machine, engine = LocalHost(), read_machine(), registry.get(name)
    installation = engine.locate(host)
    if isinstance(engine, LoadingEngine):
        engine.load(data.data, installation, host=host, progress=quiet)
    deploy = Deployer(
        engines={name: Hosted(engine) if name in BACKENDS else engine},
        machine=machine,
        host=host,
        data=data.data,
        name=f"perf-{os.getpid()}",
        progress=lambda line: None,
    )
    plan = make_plan(machine, engine.traits, "wim", heap_limit_bytes=HEAP_BYTES)
    with deploy(Entrant(label=name, engine=name, plan=plan)) as server:
        yield server
