"""How much of an experiment means something on a machine, and what it costs there. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from atoll.errors import UsageError
from atoll.experiments.claims import parse_claim, terms_of
from atoll.experiments.here import Can, possible, too_large, unmet
from atoll.experiments.oltp_readings import transactions_here
from atoll.experiments.workload_settings import at_scale, make_settings, runs_of
from atoll.schema.experiment import (
    BenchRun,
    Experiment,
    MeasureRun,
    OperatorRun,
    TransactionRun,
    WorkloadRun,
)
from atoll.schema.machine import Machine
from atoll.schema.plan import EngineTraits

_DEPLOYMENTS = 3  # of operators; a profile comes before
Traits = Callable[[str], EngineTraits]


@dataclass(frozen=True, slots=True)
class Outlook:
    here: Literal["yes", "in part", "no"]
    why: tuple[str, ...] = ()  # what is missing, or what is not varied
    cost_s: Mapping[str, float | None] | None = None  # by scale, our guess; None: too large


def outlook(
    experiment: Experiment,
    machine: Machine,
    traits: Traits,
    uncounted: Mapping[str, str],
    measure_s: Callable[[MeasureRun], Mapping[str, float]],
    can: Can,
) -> Outlook:
    """For a list: of one engine of each scale, as if the others had as many deployments.

    `uncounted`: the terms that nothing counts here, with the reason.
    """
    missing = unmet(experiment.needs, machine)
    terms = [one.name for one in terms_of(parse_claim(experiment.check.shape))]
    missing += dict.fromkeys(uncounted[one] for one in terms if one in uncounted)
    if missing:
        return Outlook("no", tuple(missing))
    if experiment.measure is not None:
        return Outlook("yes", cost_s=measure_s(experiment.measure))
    if experiment.workload is not None:
        return _of_workloads(experiment.workload, machine, can)
    if experiment.oltp is not None:
        return _of_transactions(experiment.oltp, machine, traits(experiment.oltp.engine))
    if experiment.operators is not None:
        return _of_operators(experiment.operators, machine)
    assert experiment.bench is not None
    return _of_bench(experiment.bench, machine, traits, can)


def _of_workloads(run: WorkloadRun, machine: Machine, can: Can) -> Outlook:
    cost_s: dict[str, float | None] = {}
    for name, scale in run.scales.items():
        try:
            settings = make_settings(at_scale(run, scale), machine, can)
        except UsageError as fault:
            return Outlook("no", (str(fault),))
        large = too_large(scale, machine)
        cost_s[name] = None if large else runs_of(scale, settings) * scale.run_s
    return Outlook("in part" if settings.cannot else "yes", settings.cannot, cost_s)


def _of_transactions(run: TransactionRun, machine: Machine, traits: EngineTraits) -> Outlook:
    try:
        can = transactions_here(run, machine, traits)
    except UsageError as fault:
        return Outlook("no", (str(fault),))
    runs = len(can.seats) * len(run.workloads)
    cost_s: dict[str, float | None] = {
        name: None if too_large(scale, machine) else runs * scale.blocks * scale.run_s
        for name, scale in run.scales.items()
    }
    return Outlook("in part" if can.cannot else "yes", can.cannot, cost_s)


def _of_operators(run: OperatorRun, machine: Machine) -> Outlook:
    cost_s: dict[str, float | None] = {
        name: None if too_large(scale, machine) else (_DEPLOYMENTS * scale.blocks + 1) * scale.run_s
        for name, scale in run.scales.items()
    }
    return Outlook("yes", cost_s=cost_s)


def _of_bench(run: BenchRun, machine: Machine, traits: Traits, can: Can) -> Outlook:
    cost_s: dict[str, float | None] = {}
    cannot: dict[str, None] = {}
    for name, scale in run.scales.items():
        engines = scale.engines or run.engines
        try:
            grid = possible(run, machine, [traits(engines[0])], can)
        except UsageError as fault:
            return Outlook("no", (str(fault),))
        cannot |= dict.fromkeys(grid.cannot)
        seconds = len(grid.entrants) * len(engines) * scale.blocks * scale.deployment_s
        cost_s[name] = None if too_large(scale, machine) else seconds
    return Outlook("in part" if cannot else "yes", tuple(cannot), cost_s)
