"""What `atoll experiment` does for a figure that is measured with workloads."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path

from atoll.bench.results import require_new
from atoll.cli.measure import refuse_unwritable
from atoll.cli.terminal import progress
from atoll.errors import EngineFailed, UsageError
from atoll.experiments.here import Can, too_large
from atoll.experiments.ours import Ours, of_workloads
from atoll.experiments.planned import unjudged_workloads
from atoll.experiments.workload_run import Length, measure_workloads, resumable
from atoll.experiments.workload_settings import Settings, at_scale, make_settings, runs_of
from atoll.host.api import Host
from atoll.host.local import LocalHost
from atoll.knobs.journal import JournalFolder
from atoll.probing.workload import kernels
from atoll.schema.experiment import Experiment, WorkloadRun, WorkloadScale
from atoll.schema.machine import Machine
from atoll.schema.span import span
from atoll.schema.text import plural
from atoll.store.document import write_document
from atoll.store.paths import new_results
from atoll.supervise.interrupts import terminate_is_interrupt


def what_can(host: Host) -> Can:
    from atoll.advice.reading import loadable
    from atoll.host.virtual_network import network_fault

    root = host.user_id() == 0
    try:
        known = kernels(host)
    except EngineFailed:  # not installed
        known = None
    fault = "" if root else "only root turns switches of the whole system"
    return Can(loadable(host), fault, known, network_fault(host))


def run_workloads(
    experiment: Experiment,
    run: WorkloadRun,
    scale: WorkloadScale,
    machine: Machine,
    output: Path | None,
    within_s: float | None,
    *,
    resume: bool,
    a_try: bool,
) -> Ours:
    """Raises UsageError if nothing could be judged (but for `a_try`) or resumed, at once, and of a
    KeyboardInterrupt how to go on."""
    host, run = LocalHost(), at_scale(run, scale)
    settings = make_settings(run, machine, what_can(host))
    try:
        lost = unjudged_workloads(experiment, machine, settings)
    except UsageError as fault:
        if not a_try:
            raise
        lost = [str(fault).removeprefix(f"{experiment.name} cannot be judged here: ")]
    for line in settings.cannot:
        print(f"atoll: not varied here: {line}", file=sys.stderr)
    for line in lost:
        print(f"atoll: cannot be judged here: {line}", file=sys.stderr)
    path = output or new_results(experiment.name)
    earlier = resumable(path, machine, settings, scale) if resume else None
    if not resume:
        require_new(path)
    if within_s is None:
        first = earlier.runs[-1].block + 1 if earlier else 0
        left = scale.model_copy(update={"blocks": max(0, scale.blocks - first)})
        print(f"atoll: {_cost(left, settings)}", file=sys.stderr)
    refuse_unwritable(str(path))

    try:
        with terminate_is_interrupt(), progress(experiment.name) as say:
            found = measure_workloads(
                host,
                run,
                machine,
                settings,
                scale=scale,
                length=Length(scale.blocks, within_s),
                folder=JournalFolder(),
                keep=partial(write_document, path),
                say=say if sys.stderr.isatty() else lambda _: None,
                earlier=earlier,
            )
    except KeyboardInterrupt:
        if not path.exists():
            raise KeyboardInterrupt("no block was whole, so nothing is kept") from None
        same = f"repeat the command with -o {shlex.quote(str(path))} --resume"
        raise KeyboardInterrupt(f"whole blocks are kept; to go on, {same}") from None
    print(f"atoll: results: {path}", file=sys.stderr)
    return of_workloads(experiment, found, path.name)


def workloads_here(experiment: Experiment, run: WorkloadRun, machine: Machine) -> list[str]:
    """What this machine can vary, cannot vary, and the cost of each scale."""
    lines: list[str] = []
    rest: dict[str, None] = {}
    for size, scale in run.scales.items():
        try:
            settings = make_settings(at_scale(run, scale), machine, what_can(LocalHost()))
            rest |= dict.fromkeys(f"cannot vary {one}" for one in settings.cannot)
            lost = unjudged_workloads(experiment, machine, settings)
        except UsageError as fault:
            lines.append(f"{size}: cannot: {fault}")
            continue
        large = too_large(scale, machine)
        lines.append(f"{size}: {f'cannot: {large}' if large else _cost(scale, settings)}")
        rest |= dict.fromkeys(f"cannot be judged here: {one}" for one in lost)
    return [*lines, *rest]


def _cost(scale: WorkloadScale, settings: Settings) -> str:
    if not scale.blocks:
        return "the file has all blocks; nothing is left to measure"
    return (
        f"{plural(len(settings.all), 'setting')} of "
        f"{plural(len(settings.workloads), 'workload')} in each of "
        f"{plural(scale.blocks, 'block')}, by our guess about "
        f"{span(runs_of(scale, settings) * scale.run_s)}"
    )
