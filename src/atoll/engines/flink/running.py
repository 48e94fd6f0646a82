"""A Flink job that runs, seen through its JobManager's REST interface and /proc.

A subtask is an operator: it has a thread of its own. Threads that serve one subtask (they flush its
output, fire its timers) go with it. All other threads of a task manager's JVM are left where they
are: its collector, its compilers, its network, and those that answer Flink's own messages.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from atoll.engines.binding import bind
from atoll.engines.flink.documents import Counts, Job, TaskManager, Vertex
from atoll.engines.flink.graph import Stretch, edges, operators, source_rate, waiting
from atoll.engines.flink.rest import Rest
from atoll.engines.flink.subtasks import operator_ids, same_names, threads_of
from atoll.engines.flink.tally import AGES, PER_SECOND, parse_tally, percentile_ms, whole_seconds
from atoll.engines.placeable import OperatorThread, Throughput
from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Host
from atoll.inspect.duty import look, sample, watched
from atoll.inspect.jvm import parse_thread_names
from atoll.inspect.listeners import holders, tcp_listeners
from atoll.inspect.processes import GONE
from atoll.inspect.tasks import Thread
from atoll.schema.operator_graph import OperatorGraph, Rate
from atoll.schema.operators import Kind
from atoll.schema.placement import Placement
from atoll.schema.text import first_line, first_of

_DUMP_S = 30.0  # a busy JVM reaches a safepoint late
# A JobManager asks its task managers for their counts every 10 s by default, and only if it is
# asked itself.
_COUNTS_S = 12.0
_POLL_S = 0.2
_WAITS = 0.05  # of the time; a vertex that waits longer for its takers holds its givers up


@dataclass(slots=True)
class FlinkJob:
    """See `atoll.engines.placeable.Running`."""

    host: Host
    rest: Rest
    job: str  # its id
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # of vertices, by name
    counting: bool = False  # its sinks are Atoll's own
    # pid -> its threads at the last dump. A dump stops the JVM, so it is made for new threads only.
    _dumps: dict[int, dict[int, str]] = field(default_factory=dict)
    _pids_of: dict[str, list[int]] = field(default_factory=dict)  # by the task manager's id
    # Of tasks with the same name, which thread is whose is found once.
    _owners: dict[str, tuple[Thread, ...]] = field(default_factory=dict)

    def threads(self) -> list[OperatorThread]:
        return [
            OperatorThread((operator,), thread.pid, thread.tid)
            for operator, threads in self._found(self._document()).items()
            for thread in threads
        ]

    def place(self, placement: Placement) -> None:
        bind(self.host, self.threads, placement)

    def profile(self, seconds: float) -> OperatorGraph:
        job = self._document()
        found = self._found(job)
        began_s, first = self._counts()
        ours = {thread for threads in found.values() for thread in threads}
        others = {Thread(pid, tid) for pid, names in self._dumps.items() for tid in names} - ours
        before = look(self.host, others)
        moments = sample(self.host, ours, seconds=seconds)
        after = look(self.host, others)
        ended_s, last = self._counts()
        stretches = _between(ended_s - began_s, first, last)
        between = edges(job, stretches)
        seen = watched(moments, found, [(edge.giver, edge.taker) for edge in between])
        rate = source_rate(job, stretches)
        rest_s = sum(
            after.cpu_s[thread] - used_s
            for thread, used_s in before.cpu_s.items()
            if thread in after.cpu_s
        ) / (after.at_s - before.at_s)
        return OperatorGraph(
            engine="flink",
            rate=Rate(value=rate, unit="records/s") if rate > 0 else None,
            seconds=seen.seconds,
            operators=operators(job, self.kinds, seen.activity),
            edges=between,
            overlaps=seen.overlaps,
            notes=(*seen.notes, *_notes(job, stretches, found, rest_s)),
        )

    def measure(self, seconds: float) -> Throughput:
        """Raises UsageError for a job that somebody else has started."""
        if not self.counting:
            raise UsageError("only Atoll's own Flink job can be measured: its sinks count by time")
        _, before = self._counts()
        _, ages = self.tallies()
        began_s, began = self.host.monotonic(), int(time.time()) + 1
        until = began + round(seconds)
        while time.time() < until + _POLL_S:
            self.host.sleep(_POLL_S)
        _, after = self._counts()
        passed_s = self.host.monotonic() - began_s
        per_second, all_ages = self.tallies()
        job = self._document()
        stretches = _between(passed_s, before, after)
        counted = whole_seconds(per_second, began, until)
        try:
            p50, p90, p99 = (percentile_ms(all_ages - ages, percent) for percent in (50, 90, 99))
        except ValueError:
            raise EngineFailed(
                f"job {self.job}: no record reached a sink in {seconds:g} s"
            ) from None
        return Throughput(
            unit="records/s",
            per_window=counted,
            p50_ms=p50,
            p90_ms=p90,
            p99_ms=p99,
            backlog=bool(waiting(job, stretches, _WAITS)),
        )

    def rate(self, seconds: float) -> float:
        """Records a second that its sources give."""
        began_s, first = self._counts()
        self.host.sleep(seconds)
        ended_s, last = self._counts()
        return source_rate(self._document(), _between(ended_s - began_s, first, last))

    def tallies(self) -> tuple[Counter[int], Counter[int]]:
        """What the sinks have counted: rows by second, and by age."""
        found = {PER_SECOND: Counter[int](), AGES: Counter[int]()}
        for vertex in self._sinks():
            names = [metric.id for metric in self.rest.metrics(self.job, vertex.id)]
            wanted = tuple(name for name in names if name.rpartition(".")[2] in found)
            for metric in self.rest.metrics(self.job, vertex.id, wanted) if wanted else ():
                found[metric.id.rpartition(".")[2]] += parse_tally(metric.value)
        return found[PER_SECOND], found[AGES]

    def _sinks(self) -> list[Vertex]:
        job = self._document()
        givers = {given.giver for node in job.plan.nodes for given in node.inputs}
        return [vertex for vertex in job.vertices if vertex.id not in givers]

    def _document(self) -> Job:
        """Raises EngineFailed if the job does not run."""
        job = self.rest.job(self.job)
        if job.state != "RUNNING":
            causes = self.rest.exceptions(self.job).history.entries
            why = f": {first_line(causes[0].stack or causes[0].exception)}" if causes else ""
            raise EngineFailed(f"job {job.name!r} of {self.rest.url} is {job.state}{why}")
        return job

    def _counts(self) -> tuple[float, dict[str, Counts]]:
        """What each vertex has counted, as soon as the JobManager has asked the task managers
        again, and when that was. If nothing changes, nothing moves."""
        old = self._document().vertices
        began_s = self.host.monotonic()
        while (new := self._document().vertices) == old:
            if self.host.monotonic() - began_s > _COUNTS_S:
                break
            self.host.sleep(_POLL_S)
        return self.host.monotonic(), {vertex.id: vertex.counts for vertex in new}

    def _found(self, job: Job) -> dict[str, tuple[Thread, ...]]:
        """Operator -> its threads on this machine. Raises EngineFailed if there are none."""
        self._dumps = {pid: self._names(pid) for pid in self._pids()}
        names = {
            Thread(pid, tid): name
            for pid, dump in self._dumps.items()
            for tid, name in dump.items()
        }
        used = look(self.host, names).cpu_s if same_names(job.vertices) else {}
        found = threads_of(job.vertices, names, used)
        for operator, threads in self._owners.items():
            if operator in found and set(threads) <= names.keys():
                found[operator] = threads
        twice = set(same_names(job.vertices))
        ids = operator_ids(job.vertices)
        self._owners = {
            operator: found[operator]
            for vertex in job.vertices
            if vertex.name in twice
            for operator in ids[vertex.id]
            if operator in found
        }
        if not found:
            raise EngineFailed(f"job {job.name!r}: no task of it runs on this machine")
        return found

    def _names(self, pid: int) -> dict[int, str]:
        try:
            alive = {int(name) for name in self.host.list_dir(f"/proc/{pid}/task")}
            known = self._dumps.get(pid, {})
            if not alive <= known.keys():
                answer = self.host.ask_jvm(pid, "Thread.print", timeout_s=_DUMP_S)
                known = dict.fromkeys(alive, "") | parse_thread_names(answer)
        except GONE:
            raise EngineFailed(f"the task manager {pid} has ended") from None
        except OSError as fault:
            raise EngineFailed(
                f"the task manager {pid} does not name its threads: {fault.strerror or fault}"
            ) from None
        return {tid: name for tid, name in known.items() if tid in alive}

    def _pids(self) -> list[int]:
        """The task managers on this machine."""
        managers = self.rest.task_managers().found
        for manager in managers:
            if manager.id not in self._pids_of:
                self._pids_of[manager.id] = _holders(self.host, manager)
        pids = [pid for manager in managers for pid in self._pids_of[manager.id]]
        if not pids:
            where = first_of([manager.id for manager in managers], 3) or "none"
            raise EngineFailed(
                f"{self.rest.url}: no task manager runs on this machine where this user may look "
                f"at it (there are: {where}); run Atoll where they run, as their user or as root"
            )
        return pids


def _between(
    seconds: float, first: Mapping[str, Counts], last: Mapping[str, Counts]
) -> dict[str, Stretch]:
    return {
        vertex: Stretch(seconds, counts, last[vertex])
        for vertex, counts in first.items()
        if vertex in last
    }


def _holders(host: Host, manager: TaskManager) -> list[int]:
    """The process of this machine that listens at its address, if any."""
    try:
        address = urlsplit(manager.path)
        name, port = address.hostname or "", address.port or 0
    except ValueError:
        return []
    numeric = _local(host, name)
    return holders(host, tcp_listeners(host, numeric, port)) if numeric else []


def _local(host: Host, name: str) -> str:
    """The numeric address of the name if it is one of this machine's, else ''."""
    try:
        address = socket.gethostbyname(name)
    except (OSError, UnicodeError):  # no name for DNS
        return ""
    own = {each for found in host.addresses().values() for each in found}
    return address if address in own or ipaddress.ip_address(address).is_loopback else ""


def _notes(
    job: Job,
    stretches: Mapping[str, Stretch],
    found: Mapping[str, tuple[Thread, ...]],
    rest_s: float,
) -> tuple[str, ...]:
    busy = sum(
        rate for stretch in stretches.values() if (rate := stretch.rate("busy_ms") / 1000) == rate
    )
    notes = [
        "memory bandwidth is not measured",
        f"threads of the JVM that serve no single operator took {rest_s:.2f} of a core: collector, "
        "compilers, network; they are not placed",
        f"by Flink's own count its tasks were busy for {busy:.2f} s a second, waiting included",
    ]
    if twice := same_names(job.vertices):
        notes.append(
            f"several tasks are named {first_of(twice, 3)}; it is by how busy they are "
            "that their threads were found; give them names of their own if it matters"
        )
    missing = {name for ids in operator_ids(job.vertices).values() for name in ids} - found.keys()
    if missing:
        notes.append(f"no thread was found on this machine of {first_of(sorted(missing), 3)}")
    if held := waiting(job, stretches, _WAITS):
        notes.append(
            f"{first_of(held, 3)} waited for takers: the sources could give more than this rate"
        )
    return tuple(notes)
