"""A bench of the toy engine, with real processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from atoll.bench.deploy import Deployer
from atoll.bench.results import ResultsWriter
from atoll.bench.runner import Bench, Tick
from atoll.engines.api import Data
from atoll.host.local import LocalHost
from atoll.schema.results import Entrant, RunHeader
from tests.parts.bench import FakeWork, header
from tests.parts.toy import ToyEngine, this_machine, toy_plan

NAME = "toy-bench"  # of its deployment
QUERY_LIMIT_S = 20.0


@dataclass
class Work(FakeWork):
    """Asks what `query_of` says, by how often it was asked before."""

    query_of: Callable[[int], str] = lambda turn: "select 1"
    asked: list[str] = field(default_factory=list)

    def sql(self, engine: str, query: str) -> str:
        self.asked.append(self.query_of(len(self.asked)))
        return self.asked[-1]


def toy_header(blocks: int = 2) -> RunHeader:
    entrant = Entrant(label="toy/wic", engine="toy", plan=toy_plan())
    return header(
        entrant,
        queries=("q1",),
        blocks_asked=blocks,
        query_limit_s=QUERY_LIMIT_S,
        machine=this_machine(),
    )


def bench(
    path: Path,
    engine: ToyEngine,
    work: Work | None = None,
    *,
    blocks: int = 2,
    tick: Callable[[Tick], None] = lambda tick: None,
) -> None:
    head = toy_header(blocks)
    deploy = Deployer(
        engines={"toy": engine},
        machine=head.machine,
        host=LocalHost(),
        data=Data("none", "", ()),
        name=NAME,
        progress=lambda line: None,
    )
    with ResultsWriter.create(path, head) as writer:
        Bench(head, LocalHost(), deploy, work or Work(), writer.append, tick).run()
