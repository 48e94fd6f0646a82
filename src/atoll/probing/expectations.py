"""Compares what was measured with the catalog's figures for this CPU model. Pure.

There are two figures: STREAM's triad by all cores from memory, and the number of chiplets. A triad
more than 10 % under the expected value makes the machine 'misconfigured?': an empty memory channel,
slow memory, or a node setting of the firmware. The verdict has a question mark and applies only to
comparable machines: whole, real, idle, and measured from memory. All others get 'not comparable'
and the reason, since a figure for a part says nothing about the whole.
"""

from __future__ import annotations

import re
from typing import Literal

from atoll.probing.catalog import Catalog, Cpu, catalog
from atoll.schema.confidence import LEAST_CONFIDENCE
from atoll.schema.machine import Machine
from atoll.schema.profile import Expectation, Profile, StreamKernel, StreamRun
from atoll.schema.size import percent
from atoll.schema.text import plural

Verdict = Literal["as expected", "misconfigured?", "not comparable"]

_TOLERANCE = 0.10
_TRIAD = "STREAM triad out of memory, all cores"
_CHIPLETS = "chiplets by measurement"


def expectations(
    profile: Profile, machine: Machine, known: Catalog | None = None
) -> tuple[Expectation, ...]:
    """Empty if the catalog does not know the model."""
    known = known or catalog()
    names = [machine.cpu_model, profile.environment.cpu_model]
    cpu = known.cpu_of(name for name in names if name)
    if cpu is None:
        return ()
    part = _only_a_part(profile, machine, cpu, known)
    checks = (_triad(profile, machine, cpu, known, part), _chiplets(profile, machine, cpu, part))
    return tuple(one for one in checks if one is not None)


def _triad(
    profile: Profile, machine: Machine, cpu: Cpu, known: Catalog, part: str
) -> Expectation | None:
    run = _best_triad(profile)
    if run is None:
        return None
    packages = max(1, len(machine.packages))
    whole = known.machine_of(
        machine.cpu_model, packages=len(machine.packages), cores=len(machine.cores)
    )
    if whole is not None:
        model, expected, source = whole.name, whole.triad_gbs, whole.source
    else:
        peak_gbs = packages * cpu.peak_gbs
        model, expected = cpu.model, known.triad.share * peak_gbs
        source = f"{known.triad.share:g} of {peak_gbs:.1f} GB/s, {known.triad.source}; {cpu.source}"
    measured = run.bandwidth_gbs.value
    why_not = part or _unusable(profile, machine, run)
    if not why_not and whole is None:
        why_not = _small(machine, cpu)
        if known.unspecified.matches(machine.cpu_model or profile.environment.cpu_model):
            why_not = "it was made for one cloud, and its maker publishes nothing on its memory"
    below = 1 - measured / expected
    verdict: Verdict
    if why_not:
        verdict, reason = "not comparable", why_not
    elif below > _TOLERANCE:
        verdict = "misconfigured?"
        reason = (
            f"{percent(below)} below the expected value: check that every memory channel is "
            "populated, at which speed the memory runs, and how many nodes the "
            "firmware makes of a package"
        )
    else:
        verdict, reason = "as expected", _beside(below)
    return Expectation(
        model=model,
        figure=_TRIAD,
        expected=expected,
        measured=measured,
        unit="GB/s",
        verdict=verdict,
        reason=reason,
        source=source,
    )


def _chiplets(profile: Profile, machine: Machine, cpu: Cpu, part: str) -> Expectation | None:
    inference = profile.inference
    if inference is None or cpu.islands == 1:
        return None
    packages = max(1, len(machine.packages))
    expected, measured = packages * cpu.islands, len(inference.chiplets)
    hidden = cpu.l3_groups < cpu.tiles
    verdict: Verdict
    if measured == expected:
        verdict, reason = "as expected", "as many as the model has"
    elif part or profile.emulated:
        verdict, reason = "not comparable", part or "the CPU is emulated"
    elif inference.confidence < LEAST_CONFIDENCE:
        verdict, reason = "not comparable", "these figures cannot tell whether there are chiplets"
    elif measured > expected:
        verdict, reason = "not comparable", "more than the model has, so the figures mislead"
    elif measured == 0 and hidden:
        verdict = "not comparable"
        reason = (
            f"its {cpu.tiles} tiles share one L3 and did not show in these figures; "
            "give them with --chiplets"
        )
    elif not cpu.exact:
        verdict, reason = "not comparable", "models of this family have at most this many"
    else:
        verdict = "misconfigured?"
        reason = "fewer than the model has: check whether the firmware has disabled some"
    return Expectation(
        model=cpu.model,
        figure=_CHIPLETS,
        expected=expected,
        measured=measured,
        unit="chiplets",
        verdict=verdict,
        reason=reason,
        source=cpu.source,
    )


def _best_triad(profile: Profile) -> StreamRun | None:
    """The fastest from memory, by as many threads as any run had."""
    runs = [
        run for run in profile.stream if run.kernel is StreamKernel.TRIAD and run.level == "memory"
    ]
    most = max((run.threads for run in profile.stream), default=0)
    return max(
        (run for run in runs if run.threads == most),
        key=lambda run: run.bandwidth_gbs.value,
        default=None,
    )


def _unusable(profile: Profile, machine: Machine, run: StreamRun) -> str:
    if profile.emulated:
        return "the CPU is emulated, so its figures mean nothing"
    if run.threads < len(machine.cores):
        return f"{plural(run.threads, 'thread')} on {plural(len(machine.cores), 'core')}"
    if not run.bandwidth_gbs.settled:
        return "the figure did not settle; measure again on an idle machine"
    return ""


def _only_a_part(profile: Profile, machine: Machine, cpu: Cpu, known: Catalog) -> str:
    """Why the figures are not those of whole packages; empty if they are."""
    measured = frozenset(profile.cpus)
    left = sum(measured.isdisjoint(core.pus) for core in machine.cores)
    if left:
        return f"{left} of {len(machine.cores)} cores were not measured"
    if machine.offline_cpus:
        offline = len(machine.offline_cpus)
        return f"{plural(offline, 'CPU')} {'is' if offline == 1 else 'are'} offline"
    packages, cores = max(1, len(machine.packages)), len(machine.cores)
    if known.machine_of(machine.cpu_model, packages=packages, cores=cores) is not None:
        return ""
    named = re.search(r"\b(\d+)-Core\b", machine.cpu_model)
    should = packages * (int(named[1]) if named else cpu.most_cores)
    if cores == should:
        return ""
    if named:
        return (
            f"only {cores} of the processor's {should} cores are shown; others may use its memory"
        )
    if profile.environment.virtualization == "none" and machine.architecture == "x86_64":
        return ""  # a smaller model of the family
    return (
        f"{plural(cores, 'core')} of a model with up to {should}: a virtual machine may show only "
        "a part of it, and others may use its memory"
    )


def _small(machine: Machine, cpu: Cpu) -> str:
    """A package with few L3 groups has fewer links to memory than the channels could fill."""
    if cpu.l3_groups == 1:
        return ""
    if not machine.l3:
        return "the system shows no L3, so the model may be a small one of its family"
    shown = len(machine.l3) / max(1, len(machine.packages))
    if 2 * shown >= cpu.l3_groups:
        return ""
    return (
        f"{shown:.0f} L3 groups per package, where the family has up to {cpu.l3_groups}: a small "
        "model has fewer links to its memory"
    )


def _beside(below: float) -> str:
    if below < 0:
        return f"{percent(-below)} above the expected value"
    return f"{percent(below)} below the expected value, within {percent(_TOLERANCE)}"
