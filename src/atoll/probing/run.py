"""One run of `atoll measure`: the services that every kind of figure uses while it is measured.

    with Run(...) as run:
        for kind in run.budget.kinds:
            with run.measuring(kind):
                ... run.ask(Chase(cpu=0, node=None, bytes=4096, huge=True, budget_s=0.05)) ...

A kind asks the probe, makes figures from the answers, and reports what it leaves out. The run keeps
the time (`seconds_left`; a request gets no more than is left, and is killed soon after), restarts
a probe that hung or died, counts disturbances, and ends all its processes at its own end. It does
not decide what is measured. Each kind is one function of a run:

    pairs.measure_latency(run)      core latency, compare-and-swap and store
    pairs.measure_bandwidth(run)    core bandwidth
    nodes.measure_nodes(run)        (NodeMatrix | None, tuple of LoadedCurve)
    caches.measure_caches(run)      tuple of CacheCurve
    streams.measure_stream(run)     tuple of StreamRun
    sharing.measure_sharing(run)    tuple of Sharing
    churn.measure_churn(run)        tuple of ChurnRun
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from atoll.errors import ProbeMissing
from atoll.host.api import Host
from atoll.host.environment import emulated
from atoll.probing.budget import Budget
from atoll.probing.errors import ProbeFault
from atoll.probing.memory import free_bytes, node_free_bytes
from atoll.probing.probe import HELLO_TIMEOUT_S, Probe
from atoll.probing.requests import A_co, Answer, HelloAnswer, Request, Sampling, Spin
from atoll.probing.settle import (
    MOST_SAMPLES,
    MOST_SAMPLES_EMULATED,
    SETTLE,
    disturbed,
    figure,
)
from atoll.probing.watch import Watcher
from atoll.schema.machine import Machine
from atoll.schema.profile import Figure, Kind, Mode, Notice, Watch

# kind, part of it that is done (0 to 1), what is being measured
Progress = Callable[[Kind, float, str], None]

# A request may take this many times its budget before the probe counts as hung: a busy
# hypervisor can take a CPU away for a while.
_PATIENCE = 5
_PATIENCE_S = 2.0
_PATIENCE_EMULATED_S = 10.0
# First touch and linking of a chase while others use most of the CPU: 1 to 3 GB/s alone.
_LEAST_TOUCHED_PER_S = 100e6
# Before and after each kind.
_SPIN_S = 0.01
_TELL_EVERY_S = 0.1


class Run:
    """Raises ProbeMissing if there is no probe. Close it, or use it as a context manager."""

    def __init__(
        self,
        host: Host,
        machine: Machine,
        *,
        program: str,
        cpus: Sequence[int],
        budget: Budget,
        started_s: float,
        progress: Progress | None = None,
    ) -> None:
        self.host = host
        self.machine = machine
        self.cpus = tuple(cpus)  # allowed and requested, sorted
        self.budget = budget
        self.mode: Mode = budget.mode
        self.settle = SETTLE
        # The machine's chiplets, or those inferred from earlier figures.
        self.chiplets: tuple[tuple[int, ...], ...] = ()
        self.left_out: list[Notice] = []
        self.notices: list[Notice] = []
        self.watches: list[Watch] = []
        self._program = program
        self._progress = progress
        self._started_s = started_s
        # PU -> memory node
        self._node_of = {pu: core.node for core in machine.cores for pu in core.pus}
        self._kind = Kind.LATENCY
        self._kind_ends_s = started_s
        self._told_s = started_s
        self._watcher: Watcher | None = None
        self._others: list[Probe] = []
        self._main = Probe(host, program)
        self.hello: HelloAnswer = self._main.hello
        self.emulated = emulated(host, self.hello.hypervisor)
        self._sampling = Sampling(SETTLE, MOST_SAMPLES_EMULATED if self.emulated else MOST_SAMPLES)
        if self.emulated:
            # Starting alone takes longer there than a mode's whole time.
            self._started_s = host.monotonic()

    # -- requests -------------------------------------------------------------------------------

    def ask(
        self, request: Request[A_co], *, probe: Probe | None = None, node: int | None = None
    ) -> A_co:
        """The answer, after counting its disturbances. `node`: where the data should lie, if the
        request does not name it. Raises ProbeFault (refused, hung, died); the next request starts
        the run's own probe again."""
        chosen = probe or self._main_probe()
        answer = chosen.ask(
            request, self._sampling, most_s=self.seconds_left(), timeout_s=self._timeout_s(request)
        )
        self._seen(request, answer, node)
        return answer

    def attempt(
        self,
        request: Request[A_co],
        what: str,
        *,
        probe: Probe | None = None,
        node: int | None = None,
    ) -> A_co | None:
        """Like `ask`, but if there is no answer or no time, leaves `what` out with the reason and
        returns None. `what` is a noun phrase for people: 'STREAM copy over 1.5 GB'."""
        if self.out_of_time(what):
            return None
        try:
            return self.ask(request, probe=probe, node=node)
        except ProbeFault as fault:
            self.leave_out(fault.code, f"{what}: {fault}")
            return None

    def together(self, requests: Sequence[tuple[Probe, Request[A_co]]]) -> list[A_co]:
        """Asks several probes at once, one process per chiplet for example. Either all answer, or
        it raises ProbeFault after ending the probes that were still at work."""
        most_s = self.seconds_left()
        posted: list[tuple[Probe, Request[A_co]]] = []
        answers: list[A_co] = []
        try:
            for probe, request in requests:
                probe.post(request, self._sampling, most_s=most_s)
                posted.append((probe, request))
            # One limit for all, since they work at the same time.
            timeout_s = max((self._timeout_s(request) for _, request in requests), default=0.0)
            ends_s = self.host.monotonic() + timeout_s
            for probe, request in requests:
                left_s = max(0.0, ends_s - self.host.monotonic())
                answers.append(probe.collect(request, timeout_s=left_s))
        except ProbeFault:
            for probe, _ in posted[len(answers) :]:
                probe.close()
            raise
        for (_, request), answer in zip(requests, answers, strict=True):
            self._seen(request, answer)
        return answers

    @contextmanager
    def another_probe(self, env: Mapping[str, str] | None = None) -> Iterator[Probe]:
        """A separate probe that ends with the block; `env` is for LD_PRELOAD and similar variables.
        Raises ProbeMissing."""
        probe = self._start(env)
        self._others.append(probe)
        try:
            yield probe
        finally:
            self._others.remove(probe)
            probe.close()

    # -- figures --------------------------------------------------------------------------------

    def figure(self, samples: Sequence[float], *answers: Answer, node: int | None = None) -> Figure:
        """The median with its interval; not settled if its answers show a disturbance. `node`:
        where the data should have been."""
        hit = any(
            disturbed(
                samples=len(samples),
                involuntary=answer.involuntary,
                misplaced_threads=answer.misplaced_threads,
                misplaced=answer.misplaced_pages(node),
            )
            for answer in answers
        )
        return figure(samples, settle=self.settle, disturbed=hit)

    def leave_out(self, code: str, message: str) -> None:
        """Records what was not measured, and why. Each message only once."""
        self._add(self.left_out, code, message)

    def notice(self, code: str, message: str) -> None:
        """Records why measured figures are doubtful. Each message only once."""
        self._add(self.notices, code, message)

    # -- time -----------------------------------------------------------------------------------

    def seconds_left(self) -> float:
        """Seconds left of the current kind's time."""
        return max(0.0, self._kind_ends_s - self.host.monotonic())

    def out_of_time(self, what: str) -> bool:
        """Whether the current kind's time is over; if so, leaves `what` out."""
        if self.seconds_left() > 0:
            return False
        self.leave_out("no-time", f"{self._kind}: no time left for {what}")
        return True

    def cut_short(self, where: str, missing: int, whole: int, what: str) -> None:
        """Leaves out the last `missing` of `whole` figures, for which there is no time."""
        self.leave_out("no-time", f"{where}: no time left for {missing} of {whole} {what}")

    def elapsed_s(self) -> float:
        return self.host.monotonic() - self._started_s

    def report(self, share: float, text: str) -> None:
        """Reports the part of the current kind that is done (0 to 1); may be called often."""
        now_s = self.host.monotonic()
        if self._progress is not None and (share <= 0 or now_s - self._told_s >= _TELL_EVERY_S):
            self._told_s = now_s
            self._progress(self._kind, min(1.0, max(0.0, share)), text)

    @contextmanager
    def measuring(self, kind: Kind) -> Iterator[None]:
        """One kind's turn: its share of the time, a watch for disturbances, and a boundary for its
        faults. A fault that reaches the end of the block leaves out the rest of the kind."""
        self._kind = kind
        begin_s = self.host.monotonic()
        watcher = Watcher(self.host, kind, self.cpus)
        watcher.begin(self._pids(), self._speeds())
        self._watcher = watcher
        left_s = self.budget.share_s(kind, elapsed_s=self.elapsed_s())
        self._kind_ends_s = self.host.monotonic() + left_s
        self.report(0.0, "")
        try:
            yield
        except ProbeFault as fault:
            self.leave_out(fault.code, f"{kind}: {fault}")
        except ProbeMissing as fault:  # it worked before: keep the figures of the other kinds
            self.leave_out("no-probe", f"{kind}: {fault}")
        self._watcher = None
        seconds = self.host.monotonic() - begin_s
        self.watches.append(watcher.end(self._pids(), self._speeds(), seconds))

    # -- the machine ----------------------------------------------------------------------------

    def node_of(self, cpu: int) -> int | None:
        """The memory node of a CPU; None if the system has none or does not report it."""
        return self._node_of.get(cpu)

    def home_node(self, cpu: int) -> int | None:
        """The node of pages that a CPU touches first; None: unknown, or its node has no memory."""
        node = self.machine.node_by_os_index.get(-1 if (own := self.node_of(cpu)) is None else own)
        return node.os_index if node is not None and node.memory_bytes > 0 else None

    def free_bytes(self) -> int:
        """The bytes that all kernels together may use now."""
        return free_bytes(self.host, self.machine)

    def node_free_bytes(self, node: int) -> int:
        """The bytes that kernels may use on a memory node now."""
        return min(self.free_bytes(), node_free_bytes(self.host, node))

    # -- the end --------------------------------------------------------------------------------

    def close(self) -> None:
        for probe in (*self._others, self._main):
            probe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _main_probe(self) -> Probe:
        if not self._main.usable:
            self._main = self._start()
        return self._main

    def _start(self, env: Mapping[str, str] | None = None) -> Probe:
        """Starts a probe in the kind's remaining time; an emulated CPU may take longer."""
        left_s = self.seconds_left() + self.budget.grace_s
        most_s = HELLO_TIMEOUT_S if self.emulated else min(HELLO_TIMEOUT_S, left_s)
        return Probe(self.host, self._program, env, timeout_s=most_s)

    def _timeout_s(self, request: Request[A_co]) -> float:
        left_s = self.seconds_left()
        patience_s = self._patience_s() + _PATIENCE * min(request.budget_s, left_s)
        patience_s += request.data_bytes / _LEAST_TOUCHED_PER_S
        return min(patience_s, left_s + self.budget.grace_s)

    def _patience_s(self) -> float:
        return _PATIENCE_EMULATED_S if self.emulated else _PATIENCE_S

    def _seen(self, request: Request[A_co], answer: Answer, node: int | None = None) -> None:
        if self._watcher is not None:
            self._watcher.saw(answer, request.expected_node if node is None else node)

    def _pids(self) -> list[int]:
        return [probe.pid for probe in (*self._others, self._main) if probe.usable]

    def _speeds(self) -> dict[int, float]:
        """The speed of each measured CPU, by a loop that uses no memory; empty: not available.

        The fastest sample is a core's speed: if another program takes the CPU away, samples get
        longer, but that is not a lower frequency.
        """
        if self.elapsed_s() >= self.budget.total_s and not self.emulated:
            return {}
        request = Spin(cpus=self.cpus, budget_s=_SPIN_S)
        try:
            answer = self._main_probe().ask(
                request, self._sampling, most_s=_SPIN_S, timeout_s=self._patience_s()
            )
        except (ProbeFault, ProbeMissing):
            return {}
        of_cpus = zip(self.cpus, answer.op_ns, strict=False)
        return {cpu: min(samples) for cpu, samples in of_cpus if samples}

    @staticmethod
    def _add(notices: list[Notice], code: str, message: str) -> None:
        notice = Notice(code=code, message=message)
        if notice not in notices:
            notices.append(notice)
