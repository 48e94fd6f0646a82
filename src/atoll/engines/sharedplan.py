"""`atoll-sharedplan` as a program whose operators can be placed: a small engine on Atoll's runtime
with a plan that all queries share (native/workloads/sharedplan).

Its operators are placed when it starts, because their memory is. So `place` starts it again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from atoll.engines.placeable import OperatorThread, Throughput
from atoll.errors import EngineFailed
from atoll.host.api import Conversation, Host
from atoll.host.programs import find_program
from atoll.schema.base import parse
from atoll.schema.operator_graph import OperatorGraph
from atoll.schema.placement import PlacedCore, PlacedNode, Placement
from atoll.schema.shared_plan import SharedPlanResult
from atoll.store.files import write_atomic

PROGRAM = "atoll-sharedplan"
_START_S = 300.0  # its data, its own check and a second of warming up
_ANSWER_S = 60.0  # beyond the time that a request asks for


R = TypeVar("R", OperatorGraph, SharedPlanResult)


class SharedPlan:
    """See `atoll.engines.placeable.Placeable`."""

    name = "sharedplan"

    def __init__(self, flags: Sequence[str] = ()) -> None:
        self.flags = tuple(flags)  # of the program: --scale, --browsers, ...

    @contextlib.contextmanager
    def start(self, host: Host, folder: Path, cpus: Sequence[int]) -> Iterator[RunningSharedPlan]:
        program = find_program(PROGRAM)
        if program is None:
            raise EngineFailed(f"{PROGRAM} is not installed; run 'make setup' or reinstall atoll")
        running = RunningSharedPlan(host, (program, *self.flags), folder / "placement.json")
        try:
            running.place(anywhere(cpus))
            yield running
        finally:
            running.close()


class RunningSharedPlan:
    """See `atoll.engines.placeable.Running`."""

    def __init__(self, host: Host, argv: Sequence[str], placement: Path) -> None:
        self._host, self._argv, self._placement = host, tuple(argv), placement
        self._conversation: Conversation | None = None
        self._threads: list[OperatorThread] = []

    def place(self, placement: Placement) -> None:
        self.close()
        write_atomic(self._placement, placement.model_dump_json())
        flags = ("--requests", "yes", "--placement", str(self._placement))
        try:
            self._conversation = self._host.converse((*self._argv, *flags), env={})
        except OSError as fault:
            raise EngineFailed(f"{PROGRAM}: cannot be started ({fault.strerror})") from None
        pid = self._conversation.pid
        self._threads = [
            OperatorThread(tuple(one["operators"]), pid, one["tid"])
            for one in json.loads(self._line(_START_S))["threads"]
        ]

    def threads(self) -> list[OperatorThread]:
        return self._threads

    def profile(self, seconds: float) -> OperatorGraph:
        return self._ask(OperatorGraph, "profile", seconds)

    def measure(self, seconds: float) -> Throughput:
        found = self._ask(SharedPlanResult, "measure", seconds)
        return Throughput(
            unit="interactions/s",
            per_window=found.per_window,
            p50_ms=found.p50_ms,
            p90_ms=found.p90_ms,
            p99_ms=found.p99_ms,
        )

    def close(self) -> None:
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None

    def _ask(self, kind: type[R], what: str, seconds: float) -> R:
        assert self._conversation is not None
        # A program that has ended says why when its answer is read.
        with contextlib.suppress(BrokenPipeError):
            self._conversation.send(f"{what} {seconds:g}")
        line = self._line(seconds + _ANSWER_S)
        return parse(kind, line, where=PROGRAM, error=EngineFailed)

    def _line(self, timeout_s: float) -> str:
        assert self._conversation is not None
        try:
            return self._conversation.receive(timeout_s=timeout_s)
        except TimeoutError:
            raise EngineFailed(f"{PROGRAM}: no answer within {timeout_s:.0f} s") from None
        except EOFError:
            words = " ".join(self._conversation.last_words().split())
            raise EngineFailed(words or f"{PROGRAM} ended without a word") from None


def anywhere(cpus: Sequence[int]) -> Placement:
    """No operator is bound. The program reads only the CPUs."""
    return Placement(
        deployment="os",
        headroom=0,
        cores=tuple(PlacedCore(cpu=cpu, chiplet=None, node=0, duty=0) for cpu in cpus),
        nodes=(PlacedNode(node=0, cores=len(cpus)),),
    )
