"""Runs workloads under all settings, block by block, and keeps whole blocks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from atoll.bench import switches
from atoll.bench.axes import Axis
from atoll.bench.results import require_same
from atoll.experiments.workload_settings import (
    PAPER_ROWS,
    Setting,
    Settings,
    flags,
    knobs,
    records,
)
from atoll.host.api import Host
from atoll.host.cpu_times import cpu_times
from atoll.host.environment import emulated
from atoll.knobs.journal import JournalFolder
from atoll.plan.identity import machine_id
from atoll.probing.workload import run_kernel, run_workload
from atoll.schema.cpulist import format_cpulist
from atoll.schema.experiment import WorkloadRun, WorkloadScale
from atoll.schema.kernel import KernelResult
from atoll.schema.machine import Machine
from atoll.schema.text import plural
from atoll.schema.workload import SettingRun, WorkloadResult, WorkloadRuns
from atoll.store.document import read_document

_BUSY_SHARE = 0.1  # of the CPUs' time in a block


@dataclass(frozen=True, slots=True)
class Length:
    blocks: int
    within_s: float | None = None  # instead: as many whole blocks as fit, at least one


def measure_workloads(
    host: Host,
    run: WorkloadRun,
    machine: Machine,
    settings: Settings,
    *,
    scale: WorkloadScale,
    length: Length,
    folder: JournalFolder,
    keep: Callable[[WorkloadRuns], None],
    say: Callable[[str], None],
    earlier: WorkloadRuns | None = None,
) -> WorkloadRuns:
    """In every second block the settings run in reverse order, so that drift favours none. Answers
    are checked in the first block. `keep` gets the whole blocks after each. `earlier`: the blocks
    to go on from, see `resumable`; `length` counts them, a time does not.

    Raises CheckFailed for a wrong answer, UsageError for data that does not fit into memory,
    NotPermitted if a knob cannot be turned. Every knob is restored, however this ends.
    """
    restored = switches.restore(host, folder) if any(map(knobs, settings.all)) else ""
    names = {name for one in settings.all for name in one}
    axes = [Axis(name, tuple({one[name]: None for one in settings.all})) for name in names]
    before = switches.present_values(axes, host, folder)
    busy = _Busy(host)
    done = list(earlier.runs) if earlier else []
    first = done[-1].block + 1 if done else 0
    warned = earlier.warnings if earlier else ()
    if earlier and length.within_s is None and first >= length.blocks:
        return earlier
    started_s = host.monotonic()
    with switches.turning(before, host, folder, say) as turn:
        for block in range(first, length.blocks if length.within_s is None else 1_000_000):
            pairs = settings.pairs if block % 2 == 0 else settings.pairs[::-1]
            for place, (name, one) in enumerate(pairs):
                say(f"block {block + 1}, run {place + 1} of {len(pairs)}: {_words(name, one)}")
                turn(knobs(one))
                own, launch = flags(
                    run, name, one, scale=scale, check=block == first, machine=machine
                )
                start = run_workload if name in PAPER_ROWS else run_kernel
                result = start(host, own, launch)
                done.append(SettingRun(block=block, setting=dict(one), result=result))
            busy.look()
            found = WorkloadRuns(
                machine=machine,
                emulated=emulated(host),
                settings=tuple(map(dict, settings.all)),
                runs=tuple(done),
                warnings=(*warned, *filter(None, [restored, busy.warning])),
            )
            keep(found)
            blocks = block + 1 - first
            block_s = (host.monotonic() - started_s) / blocks
            if length.within_s is not None and block_s * (blocks + 1) >= length.within_s:
                break
    return found


def resumable(
    path: Path, machine: Machine, settings: Settings, scale: WorkloadScale
) -> WorkloadRuns:
    """The runs of a file that the same experiment at the same scale here goes on from. Raises
    UsageError."""
    found = read_document(WorkloadRuns, path)
    there = {one.result.workload: _size(one.result, scale) for one in found.runs}
    wanted = {
        name: f"{records(name, scale.part)} records"
        if name in PAPER_ROWS
        else scale.flags.get(name, "")
        for name in settings.workloads
    }
    then = format_cpulist(found.machine.allowed.pus)
    require_same(
        str(path),
        ("machine", machine_id(found.machine), machine_id(machine)),
        ("allowed CPUs", then, format_cpulist(machine.allowed.pus)),
        ("settings", [*found.settings], [dict(one) for one in settings.all]),
        ("size", there, wanted),
    )
    return found


class _Busy:
    """How many blocks other programs disturbed."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._blocks = self._disturbed = 0
        self._before = self._times()

    def look(self) -> None:
        """At the end of a block."""
        now = self._times()
        total, busy, own = (b - a for a, b in zip(self._before, now, strict=True))
        self._before = now
        self._blocks += 1
        self._disturbed += busy - own > _BUSY_SHARE * total

    @property
    def warning(self) -> str:
        if not self._disturbed:
            return ""
        return (
            f"other programs took more than {_BUSY_SHARE:.0%} of the CPUs in {self._disturbed} of "
            f"{plural(self._blocks, 'block')}"
        )

    def _times(self) -> tuple[float, float, float]:
        """Ticks of all CPUs, those in which anything ran, and those of the runs."""
        all_, own = cpu_times(self._host), os.times()
        ticks = os.sysconf("SC_CLK_TCK")
        used = own.user + own.system + own.children_user + own.children_system
        return all_.total, all_.busy + all_.steal, used * ticks


def _size(result: WorkloadResult | KernelResult, scale: WorkloadScale) -> str:
    """The records, or the values of those flags that the scale has."""
    if isinstance(result, WorkloadResult):
        return f"{result.records} records"
    words = scale.flags.get(result.workload, "").split()[::2]
    return " ".join(f"{flag} {result.parameters.get(flag.removeprefix('--'))}" for flag in words)


def _words(workload: str, setting: Setting) -> str:
    return " ".join([workload, *(f"{name}={value}" for name, value in setting.items())])
