"""What can be varied for a command on this machine, and how a setting is made. Pure.

A factor is a tuner of `atoll advise`, or a number of CPUs. One without a value that means something
here says why: a machine with one memory node has no memory policies. A switch of the whole system
is turned only if its factor was named, since other programs feel it too.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from atoll.advice.process_rules import MALLOC, MEMORY, NEVER, SYSTEM, THP, THREADS
from atoll.advice.rule import ABSENT, Setting, deciding, prefix
from atoll.advice.situation import Situation
from atoll.advice.system_rules import TUNERS
from atoll.errors import UsageError
from atoll.schema.advice import PreloadEffect, Reach, SubjectKind
from atoll.schema.cpulist import format_cpulist
from atoll.schema.plan import Placement
from atoll.tune import search

_ONLY_ROOT = "only root turns switches of the whole system"
_NAME_IT = "it is a switch of the whole system, so it is turned only if --factors names it"


@dataclass(frozen=True, slots=True)
class Factor:
    name: str
    tuner: str  # of `atoll advise`; of a switch: the knob
    title: str
    reach: Reach
    current: str
    values: tuple[str, ...] = ()  # others than the current one
    why_none: str = ""
    risk: str = ""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a command, or an engine, is started with a setting."""

    flags: tuple[str, ...] = ()  # of atoll-exec
    environment: tuple[str, ...] = ()  # NAME=VALUE
    axes: dict[str, str] = field(default_factory=dict)  # of an engine's plan, as `bench` has them
    knobs: dict[str, str] = field(default_factory=dict)  # system-wide

    @property
    def prefix(self) -> str:
        """What a person writes before the command; empty for nothing."""
        return prefix([Setting(self.flags, self.environment)])

    @property
    def options(self) -> str:
        """Of `atoll up`; empty if only a plan file can say it."""
        if "cores" in self.axes or self.axes.get("smt") == "off":
            return ""
        words = ((f"--{axis}", value) for axis, value in self.axes.items() if axis != "smt")
        flag = ["--smt"] if "smt" in self.axes else []
        return shlex.join([*(word for pair in words for word in pair), *flag])


def factors(names: Sequence[str], situation: Situation) -> tuple[Factor, ...]:
    """`names`: those to vary; empty: all, without switches of the whole system. Raises
    UsageError for a name that is none."""
    for name in names:
        if name not in FACTORS:
            raise UsageError(f"--factors: no factor {name!r}; choose from {', '.join(FACTORS)}")
    if names:
        return tuple(FACTORS[name](situation) for name in dict.fromkeys(names))
    found = (make(situation) for make in FACTORS.values())
    return tuple(
        replace(one, values=(), why_none=_NAME_IT)
        if one.values and one.reach is Reach.SYSTEM
        else one
        for one in found
    )


def recipe(setting: search.Setting, found: Sequence[Factor], situation: Situation) -> Recipe:
    by_name = {factor.name: factor for factor in found}
    values = dict(setting)
    made = [
        _PROCESS_TUNERS[name].setting(value)
        for name, value in setting
        if name in _PROCESS_TUNERS and by_name[name].reach is Reach.PROCESS
    ]
    knobs = {
        by_name[name].tuner: value for name, value in setting if by_name[name].reach is Reach.SYSTEM
    }
    if situation.subject.kind is SubjectKind.ENGINE:
        axes = {option.removeprefix("--"): value for one in made for option, value in [one.options]}
        axes |= {_AXES[name]: value for name, value in setting if name in _AXES}
        return Recipe(axes=axes, knobs=knobs)
    if "smt" in values or "workers" in values:
        made.append(Setting(flags=("-C", format_cpulist(_cpus(situation, values)))))
    return Recipe(
        flags=tuple(word for one in made for word in one.flags),
        environment=tuple(word for one in made for word in one.environment),
        knobs=knobs,
    )


def parted(command: Sequence[str]) -> tuple[list[str], list[str]]:
    """A command's own atoll-exec with its options, which is mostly empty, and the rest. Settings
    come between them, because the innermost atoll-exec decides."""
    words = list(command)
    if words[0].rpartition("/")[2] != "atoll-exec" or "--" not in words:
        return [], words
    first = words.index("--") + 1
    return words[:first], words[first:]


def line(command: Sequence[str], prefix: str) -> str:
    """What a person writes to start the command with a prefix."""
    own, rest = parted(command)
    env = ["env"] if own and "=" in prefix.partition(" ")[0] else []
    return " ".join(filter(None, [shlex.join(own), *env, prefix, shlex.join(rest)]))


def _malloc(s: Situation) -> Factor:
    preload = s.subject.preload
    names = (SYSTEM, *s.mallocs)
    why = ""
    if preload.effect is PreloadEffect.NONE:
        why = f"a preload has no effect: {preload.why}"
    elif not s.mallocs:
        why = "no other malloc can be loaded; 'atoll-exec --malloc jemalloc true' names a package"
    values = () if why else tuple(one for one in names if one != s.subject.malloc)
    return Factor(
        "malloc", "malloc", MALLOC.title, Reach.PROCESS, s.subject.malloc, values, why, MALLOC.risk
    )


def _placement(s: Situation) -> Factor:
    rule = deciding(THREADS, s)
    current = s.subject.threads.value
    why = rule.why if rule.value is None else s.subject.binding_fault
    choices = (Placement.SPARSE.value, Placement.DENSE.value)
    values = () if why else tuple(one for one in choices if one != current)
    return Factor(
        "placement", "threads", THREADS.title, Reach.PROCESS, current, values, why, THREADS.risk
    )


def _memory(s: Situation) -> Factor:
    why = ""
    if not s.several_nodes or not s.own_nodes:
        why = deciding(MEMORY, s).why
    elif s.policy_fault:
        why = s.policy_fault
    choices = [s.on("interleave", s.own_nodes if s.spans else s.nodes)]
    if len(s.own_nodes) == 1:
        choices.append(s.on("bind", s.own_nodes))
    if s.memory_only and s.knob("weighted-interleave"):
        choices.append(s.on("weighted interleave", (*s.own_nodes, *s.memory_only)))
    values = () if why else tuple(one for one in choices if one != s.subject.policy)
    return Factor(
        "memory", "memory", MEMORY.title, Reach.PROCESS, s.subject.policy, values, why, MEMORY.risk
    )


def _thp(s: Situation) -> Factor:
    """Off for one program, if the system gives all programs huge pages; else on for the system."""
    current = THP.current(s)
    if current == "always":
        return Factor("thp", "thp", THP.title, Reach.PROCESS, current, (NEVER,), risk=THP.risk)
    why = ""
    if current == ABSENT:
        why = "this kernel has no transparent huge pages"
    elif not s.subject.may_have_thp:
        why = "the command is started without them"
    return _switch("thp", "thp-enabled", current, "always", why, s)


def _autonuma(s: Situation) -> Factor:
    current = s.knob("numa-balancing")
    why = ""
    if not current:
        why = "this kernel has no AutoNUMA"
    elif not s.several_nodes:
        why = "with one memory node it moves nothing"
    other = "1" if current == "0" else "0"
    return _switch("autonuma", "numa-balancing", current or ABSENT, other, why, s)


def _switch(name: str, knob: str, current: str, other: str, why: str, s: Situation) -> Factor:
    tuner = next(one for one in TUNERS if one.name == knob)
    why = why or s.knobs_fault or ("" if s.root else _ONLY_ROOT)
    values = () if why else (other,)
    return Factor(name, knob, tuner.title, Reach.SYSTEM, current, values, why, tuner.risk)


def _smt(s: Situation) -> Factor:
    several = any(len(cpus) > 1 for cpus in _cores(s))
    title = "hardware threads of each core that it may use"
    if not several:
        why = "each core has one thread that it may use"
        return Factor("smt", "smt", title, Reach.PROCESS, "off", why_none=why)
    if s.subject.kind is SubjectKind.ENGINE:  # plans use one thread of each core
        risk = "threads of one core share its caches"
        return Factor("smt", "smt", title, Reach.PROCESS, "off", ("on",), risk=risk)
    risk = "a program that counts its CPUs starts half as many threads"
    return Factor("smt", "smt", title, Reach.PROCESS, "on", ("off",), risk=risk)


def _workers(s: Situation) -> Factor:
    """By the mask, from which most programs take their number of threads."""
    cores = len(_cores(s))
    values = tuple(str(number) for number in (cores // 2, cores // 4) if number)
    why = "" if values else "it may use only one core"
    title = "cores that it may use"
    risk = "a program with more threads than cores makes them wait for each other"
    return Factor("workers", "workers", title, Reach.PROCESS, str(cores), values, why, risk)


def _cores(s: Situation) -> list[tuple[int, ...]]:
    """The CPUs of each core that the program may use, chiplet by chiplet."""
    chiplet = {core: one.index for one in s.machine.chiplets for core in one.cores}
    last = len(s.machine.chiplets)
    cores = sorted(s.machine.cores, key=lambda core: (chiplet.get(core.index, last), core.index))
    is_engine = s.subject.kind is SubjectKind.ENGINE
    own = set(s.machine.allowed.pus) if is_engine else s.subject.cpus
    found = (tuple(cpu for cpu in core.pus if cpu in own) for core in cores)
    return [cpus for cpus in found if cpus]


def _cpus(s: Situation, values: dict[str, str]) -> list[int]:
    cores = _cores(s)
    if "workers" in values:
        cores = cores[: int(values["workers"])]
    return sorted(cpu for cpus in cores for cpu in (cpus[:1] if "smt" in values else cpus))


FACTORS: dict[str, Callable[[Situation], Factor]] = {
    "malloc": _malloc,
    "placement": _placement,
    "memory": _memory,
    "thp": _thp,
    "autonuma": _autonuma,
    "smt": _smt,
    "workers": _workers,
}
_AXES = {"smt": "smt", "workers": "cores"}
_PROCESS_TUNERS = {"malloc": MALLOC, "placement": THREADS, "memory": MEMORY, "thp": THP}
