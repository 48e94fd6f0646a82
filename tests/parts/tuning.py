"""A command whose times follow a law, for the tests of tune: no process is started."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atoll.tune.search import Measured, Outcome, Search, Setting
from tests.parts.knobs import Kernel


@dataclass
class Law:
    """Seconds of a run: the product of the settings' factors, times noise, a load and a drift."""

    slowdown: Mapping[tuple[str, str], float]  # (factor, value) -> times the baseline
    noise: float = 0.03  # standard deviation of the logarithm
    seed: int = 0
    wild: float = 0.0  # share of the runs that take twice as long on average
    load: float = 0.0  # steps of what the machine's other work does to the logarithm
    drift: float = 0.0  # of each run, as a share of the first

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._loaded = 0.0
        self.runs = 0

    def cost(self, setting: Setting) -> float:
        self.runs += 1
        self._loaded = 0.95 * self._loaded + self.load * self._rng.standard_normal()
        seconds = float(np.exp(self.noise * self._rng.standard_normal() + self._loaded))
        seconds *= 1 + self.drift * self.runs
        if self.wild and self._rng.random() < self.wild:
            seconds *= 1 + self._rng.exponential()
        for pair in setting:
            seconds *= self.slowdown.get(pair, 1.0)
        return seconds


def simulated(
    steps: Search,
    law: Law,
    *,
    time_s: float = 1e9,
    fails: Sequence[Setting] = (),
) -> Outcome:
    """The outcome of a search whose runs take what the law says."""
    block = next(steps)
    while True:
        costs = {one: law.cost(one) for one in block.settings}
        seconds = sum(costs.values())
        time_s -= seconds
        kept = {one: cost for one, cost in costs.items() if one not in fails}
        try:
            block = steps.send(Measured(kept, seconds, time_s, fails))
        except StopIteration as end:
            outcome = end.value
            assert isinstance(outcome, Outcome)
            return outcome


GOOD = {
    "status": 0,
    "seconds": 1.0,
    "cpu_s": 1.0,
    "rss_bytes": 1 << 20,
    "left": [],
    "digest": "same",
    "stdout": "",
    "stderr": "",
}
Answer = Callable[[list[str], int], dict[str, object]]


class FakeRunner:
    """Answers a run by `answer(argv, number of the run)`, on top of GOOD; the clock moves on."""

    pid = 1

    def __init__(self, host: Kernel, answer: Answer) -> None:
        self._host, self._answer = host, answer
        self._line = ""
        self.runs = 0
        self.ended = False
        self.closed = False
        self.limits_s: list[float] = []

    def send(self, line: str) -> None:
        self._line = line

    def receive(self, *, timeout_s: float) -> str:
        request = json.loads(self._line)
        if not request:
            self.ended = True
            return "{}"
        self.runs += 1
        self.limits_s.append(request["limit_s"])
        answer = GOOD | self._answer(request["argv"], self.runs)
        self._host.now_s += float(str(answer["seconds"]))
        return json.dumps(answer)

    def last_words(self) -> str:
        return ""

    def close(self) -> int:
        self.closed = True
        return 0
