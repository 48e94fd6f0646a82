"""`atoll.probing.measure`: measures all kinds of figures, one after the other, into one profile.

The order is that of `Kind`: the figures from which chiplets are inferred come first, so that later
kinds can put a process on each chiplet. A kind that fails leaves a line in the profile's `left_out`
and the others go on. Only if nothing can be measured at all is an error raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from atoll.errors import UsageError
from atoll.host.api import Host
from atoll.host.environment import environment
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.infer.chiplets import infer
from atoll.probing.budget import FIGURES_PER_PAIR, budget
from atoll.probing.caches import measure_caches
from atoll.probing.churn import measure_churn
from atoll.probing.expectations import expectations
from atoll.probing.nodes import measure_nodes
from atoll.probing.pairs import measure_bandwidth, measure_latency
from atoll.probing.probe import find_probe
from atoll.probing.run import Progress, Run
from atoll.probing.settle import SETTLE
from atoll.probing.sharing import measure_sharing
from atoll.probing.streams import measure_stream
from atoll.schema.confidence import LEAST_CONFIDENCE
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.machine import Machine
from atoll.schema.profile import (
    CacheCurve,
    ChurnRun,
    Inference,
    Kind,
    LoadedCurve,
    Mode,
    NodeMatrix,
    PairMatrix,
    Profile,
    Sharing,
    StreamRun,
    Watch,
)
from atoll.schema.size import percent
from atoll.schema.text import plural

# Above these limits the figures of a kind include other programs' activity.
_STEAL_REPORTED = 0.02
_OTHERS_REPORTED = 0.10
_DRIFT_REPORTED = 0.05


def measure(
    *,
    mode: Mode | Literal["quick", "full"] = "quick",
    only: Iterable[Kind | str] | None = None,
    cpus: Iterable[int] | str | None = None,
    progress: Progress | None = None,
    host: Host | None = None,
) -> Profile:
    """Measure this machine: its latencies, bandwidths and caches, and where its chiplets are.

    `mode`: 'quick' ends within 30 s, 'full' within 5 minutes on a small machine (the number of
    pairs grows with the square of the CPUs; `estimate_s` gives the time). `only`: kinds to measure
    ('latency', 'bandwidth', 'nodes', 'cache', 'stream', 'sharing', 'churn'); None: all. `cpus`: the
    CPUs to measure, by the kernel's numbers ('0-3,8' or integers); None: all that this process may
    use. `progress` is called with the kind, the part of it that is done (0 to 1), and a text.

    Latencies are one way in ns, bandwidths in 1e9 bytes/s. Each figure is a median with its 95 %
    interval; `settled` is false if the interval is wider than 2 % or the measurement was disturbed.
    Nothing is saved: see `Profile.model_dump_json` and `atoll measure`.

    Raises UsageError (an unknown mode or kind; CPUs that do not exist or are not allowed),
    TopologyError, EngineFailed (atoll-probe is missing or does not start).
    """
    host = host or LocalHost()
    return measure_machine(host, read_machine(), mode=mode, only=only, cpus=cpus, progress=progress)


def measure_machine(
    host: Host,
    machine: Machine,
    *,
    mode: Mode | str = Mode.QUICK,
    only: Iterable[Kind | str] | None = None,
    cpus: Iterable[int] | str | None = None,
    progress: Progress | None = None,
    program: str | None = None,
    started_s: float | None = None,
) -> Profile:
    """Like `measure`, for a machine that has been read and an `atoll-probe` that was found. The
    mode's time counts from `started_s` on the host's clock; None: from now."""
    if started_s is None:
        started_s = host.monotonic()
    created = datetime.now(UTC).isoformat(timespec="seconds")
    chosen = chosen_cpus(machine, host, cpus)
    plan = budget(chosen_mode(mode), chosen_kinds(only), machine, chosen)
    with Run(
        host,
        machine,
        program=program or find_probe(),
        cpus=chosen,
        budget=plan,
        started_s=started_s,
        progress=progress,
    ) as run:
        figures = _measure_all(run)
        _note_disturbances(run)
    profile = Profile(
        created=created,
        machine_id=machine.machine_id,
        machine_title=machine.title,
        environment=environment(host, machine),
        mode=plan.mode,
        emulated=run.emulated,
        cpus=run.cpus,
        seconds=host.monotonic() - started_s,
        settle=SETTLE,
        clock=run.hello.clock,
        **vars(figures),
        watch=tuple(run.watches),
        left_out=tuple(run.left_out),
        notices=tuple(run.notices),
    )
    return profile.model_copy(update={"expectations": expectations(profile, machine)})


def estimate_s(
    *,
    mode: Mode | str = Mode.QUICK,
    only: Iterable[Kind | str] | None = None,
    machine: Machine,
    cpus: Sequence[int],
) -> float:
    """The longest that `measure` takes. `cpus` are those of `chosen_cpus`."""
    return budget(chosen_mode(mode), chosen_kinds(only), machine, cpus).estimate_s


def chosen_mode(mode: Mode | str) -> Mode:
    try:
        return Mode(mode)
    except ValueError:
        raise UsageError(f"no such mode: {mode!r}; use {' or '.join(Mode)}") from None


def chosen_kinds(only: Iterable[Kind | str] | None) -> tuple[Kind, ...]:
    """The kinds, in the order in which they are measured."""
    if only is None:
        return tuple(Kind)
    # People write 'latency,stream'.
    names = only.split(",") if isinstance(only, str) else [str(name) for name in only]
    asked = {name.strip() for name in names if name.strip()}
    if unknown := asked - set(Kind):
        raise UsageError(
            f"no such kind of figure: {', '.join(sorted(unknown))}; choose from {', '.join(Kind)}"
        )
    if not asked:
        raise UsageError(f"no kind of figure was named; choose from {', '.join(Kind)}")
    return tuple(kind for kind in Kind if kind in asked)


def chosen_cpus(machine: Machine, host: Host, cpus: Iterable[int] | str | None) -> tuple[int, ...]:
    """The CPUs, sorted; all that may be used if `cpus` is None."""
    allowed = frozenset(machine.allowed.pus) & host.affinity(0)
    if cpus is None:
        return tuple(sorted(allowed))
    try:
        wanted = frozenset(parse_cpulist(cpus) if isinstance(cpus, str) else cpus)
    except ValueError as fault:
        raise UsageError(f"{fault}; use for example '0-3,8'") from None
    if not wanted:
        raise UsageError("no CPUs were named; use for example '0-3,8'")
    if absent := wanted - frozenset(machine.pus):
        raise UsageError(
            f"CPUs {format_cpulist(absent)} are offline or do not exist; this machine has "
            f"{format_cpulist(machine.pus)}"
        )
    if outside := wanted - allowed:
        raise UsageError(
            f"CPUs {format_cpulist(outside)} may not be used: the affinity mask and the cgroup "
            f"allow {format_cpulist(allowed)}; widen them or choose other CPUs"
        )
    return tuple(sorted(wanted))


@dataclass
class _Figures:
    """The fields of a profile that are measured."""

    core_latency_cas_ns: PairMatrix | None = None
    core_latency_store_ns: PairMatrix | None = None
    core_bandwidth_gbs: PairMatrix | None = None
    nodes: NodeMatrix | None = None
    loaded: tuple[LoadedCurve, ...] = ()
    caches: tuple[CacheCurve, ...] = ()
    stream: tuple[StreamRun, ...] = ()
    sharing: tuple[Sharing, ...] = ()
    churn: tuple[ChurnRun, ...] = ()
    inference: Inference | None = None


def _measure_all(run: Run) -> _Figures:
    figures = _Figures()
    usable = frozenset(run.cpus)
    islands = (usable.intersection(chiplet.pus) for chiplet in run.machine.chiplets)
    run.chiplets = tuple(tuple(sorted(pus)) for pus in islands if pus)
    for kind in run.budget.kinds:
        if kind not in FIGURES_PER_PAIR and figures.inference is None:
            found = figures.inference = _concluded(run, figures)
            if not run.chiplets and found is not None and found.confidence >= LEAST_CONFIDENCE:
                run.chiplets = found.chiplets
        with run.measuring(kind):
            _measure_kind(run, kind, figures)
    if figures.inference is None:
        figures.inference = _concluded(run, figures)
    return figures


def _measure_kind(run: Run, kind: Kind, found: _Figures) -> None:
    match kind:
        case Kind.LATENCY:
            found.core_latency_cas_ns, found.core_latency_store_ns = measure_latency(run)
        case Kind.BANDWIDTH:
            found.core_bandwidth_gbs = measure_bandwidth(run)
        case Kind.NODES:
            found.nodes, found.loaded = measure_nodes(run)
        case Kind.CACHE:
            found.caches = measure_caches(run)
        case Kind.STREAM:
            found.stream = measure_stream(run, found.caches)
        case Kind.SHARING:
            found.sharing = measure_sharing(run)
        case Kind.CHURN:
            found.churn = measure_churn(run)


def _concluded(run: Run, found: _Figures) -> Inference | None:
    """The chiplets inferred from the figures alone, whatever the system reports."""
    latency = found.core_latency_cas_ns or found.core_latency_store_ns
    bandwidth = found.core_bandwidth_gbs
    either = latency or bandwidth
    if run.emulated or either is None:
        return None
    return infer(
        None if latency is None else latency.array(),
        None if bandwidth is None else bandwidth.array(),
        either.pus,
    )


def _note_disturbances(run: Run) -> None:
    if run.emulated:
        run.notice(
            "emulated", "the CPU is emulated: its figures mean nothing and support no conclusion"
        )
    for watch in run.watches:
        for words in _disturbances(watch):
            run.notice("disturbed", f"{watch.kind}: {words}")


def _disturbances(watch: Watch) -> list[str]:
    lines = []
    steal, others, drift = (
        share or 0.0 for share in (watch.steal_share, watch.others_share, watch.frequency_drift)
    )
    if steal > _STEAL_REPORTED:
        lines.append(f"the hypervisor took {percent(steal)} of the CPU time")
    if others > _OTHERS_REPORTED:
        lines.append(f"other processes took {percent(others)} of the CPU time")
    if drift > _DRIFT_REPORTED:
        lines.append(f"a core's speed changed by {percent(drift)}")
    if watch.misplaced_threads:
        lines.append(f"a thread ran on the wrong CPU {plural(watch.misplaced_threads, 'time')}")
    if watch.misplaced_pages:
        lines.append(f"the wrong node had {plural(watch.misplaced_pages, 'page')}")
    return lines
