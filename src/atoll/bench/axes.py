"""The axes of a bench: what `--axis NAME=V,V` varies, and what the short options set. Pure.

A value is text in one spelling: it stands like that in labels, results and reports. KINDS is the
only place that knows what a value means. An axis of one value holds for all deployments; an axis of
several is varied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from atoll.errors import UsageError
from atoll.knobs.catalog import knob_named
from atoll.plan.coordinator import parse_coordinator
from atoll.plan.request import Choices
from atoll.schema.plan import CoordinatorKind, HugePages, Malloc, MemoryPolicy, Placement, Policy
from atoll.schema.results import CellName

KNOB = "knob:"
ALL = "all"  # the default of `cores`


@dataclass(frozen=True, slots=True)
class Axis:
    name: str  # of KINDS, or 'knob:NAME'
    values: tuple[str, ...]  # different ones

    @property
    def varied(self) -> bool:
        return len(self.values) > 1


@dataclass(frozen=True, slots=True)
class Grid:
    """What is measured. `product`: all combinations, instead of one axis at a time."""

    axes: tuple[Axis, ...] = ()  # in the order of KINDS, then knobs
    product: bool = False

    @property
    def fixed(self) -> dict[str, str]:
        return {axis.name: axis.values[0] for axis in self.axes if not axis.varied}

    @property
    def varied(self) -> tuple[Axis, ...]:
        return tuple(axis for axis in self.axes if axis.varied)

    def values(self, name: str) -> tuple[str, ...]:
        return next((axis.values for axis in self.axes if axis.name == name), ())

    def having(self, *axes: Axis) -> Grid:
        """With these axes in place of those of the same names; one without values is removed."""
        new = {axis.name: axis for axis in self.axes} | {axis.name: axis for axis in axes}
        return Grid(ordered(axis for axis in new.values() if axis.values), self.product)


@dataclass(frozen=True, slots=True)
class Kind:
    takes: str  # for people
    choose: Callable[[str], Choices]  # what a value decides about a plan; ValueError, UsageError
    run: bool = False  # about the run and not about the plan, so plan files have it too


def _policy(text: str) -> Choices:
    if text != "auto":
        Policy(text)
    return {}


def _smt(text: str) -> Choices:
    if text == "off":
        return {"smt": False, "mask": True}
    if text != "on":
        raise ValueError(text)
    return {"smt": True}


def _streams(text: str) -> Choices:
    _positive(text)
    return {}


def _scheduler(text: str) -> Choices:
    if not text.isprintable():
        raise ValueError(text)
    return {}


# To add an axis: describe it here, and in docs/bench.md.
KINDS: Mapping[str, Kind] = {
    "policy": Kind(", ".join(("auto", *Policy)), _policy),
    "n": Kind("numbers of instances", lambda text: {"count": _positive(text)}),
    "memory": Kind(", ".join(MemoryPolicy), lambda text: {"memory": MemoryPolicy(text)}),
    "placement": Kind(", ".join(Placement), lambda text: {"placement": Placement(text)}),
    "smt": Kind("on, off", _smt),
    "cores": Kind(
        "numbers of cores, or all",
        lambda text: {} if text == ALL else {"cores": _positive(text)},
    ),
    "coordinator": Kind(
        "shared, in-worker, reserved:K", lambda text: {"coordinator": parse_coordinator(text)}
    ),
    "malloc": Kind(", ".join(Malloc), lambda text: {"malloc": Malloc(text)}),
    "thp": Kind(", ".join(HugePages), lambda text: {"thp": HugePages(text)}),
    "streams": Kind("numbers of concurrent queries", _streams, run=True),
    "scheduler": Kind("names of schedulers", _scheduler, run=True),
}


# Axis -> what it is meant to change besides the placement; all else is equal in a bench.
DECIDES: Mapping[str, tuple[str, ...]] = {
    "smt": ("threads", "heap", "shuffle partitions"),
    "cores": ("threads", "heap", "shuffle partitions"),
    "coordinator": ("threads", "shuffle partitions"),
    "malloc": ("malloc",),
    "thp": ("transparent huge pages",),
    "machines": ("threads", "shuffle partitions"),  # of `atoll.experiments.network`
    "streams": ("streams",),
}


def differing_axes(one: Sequence[CellName], other: Sequence[CellName]) -> set[str]:
    """The axes on which two entrants of a grid differ; none if one is no cell."""
    pairs = product(one, other)
    found = [{name for name, _ in a.values.items() ^ b.values.items()} for a, b in pairs]
    return min(found, key=len, default=set())


def is_run_axis(name: str) -> bool:
    return name.startswith(KNOB) or KINDS[name].run


def chosen(values: Mapping[str, str]) -> Choices:
    """What the values of a cell decide about its plan, besides the policy."""
    found = Choices()
    for name, text in values.items():
        if name in KINDS:
            found.update(KINDS[name].choose(text))
    return found


def parse_axis(text: str) -> Axis:
    """Parses 'memory=bind,interleave'. Raises UsageError.

    Values of knobs that contain commas have semicolons between them.
    """
    name, equals, listed = text.partition("=")
    name = name.strip()
    if not equals:
        raise UsageError(f"--axis {text}: is not NAME=VALUE,VALUE, such as memory=bind,interleave")
    separator = ";" if name.startswith(KNOB) and ";" in listed else ","
    values = [value.strip() for value in listed.split(separator) if value.strip()]
    return make_axis(name, values, option=f"--axis {name}")


def make_axis(name: str, values: Iterable[str], *, option: str) -> Axis:
    """Raises UsageError, whose message begins with `option`, for a name or a value that does not
    exist."""
    if name.startswith(KNOB):
        knob_named(name.removeprefix(KNOB))
        found = tuple(dict.fromkeys(values))
    elif name in KINDS:
        found = tuple(dict.fromkeys(_spelled(name, value, option) for value in values))
    else:
        raise UsageError(f"{option}: no such axis; choose from {', '.join(KINDS)}, {KNOB}NAME")
    if not found:
        raise UsageError(f"{option}: is empty; give one or more values, with commas between them")
    return Axis(name, found)


def make_grid(axes: Iterable[Axis], *, product: bool = False) -> Grid:
    """Raises UsageError if an axis is given twice, be it by its short option."""
    found: dict[str, Axis] = {}
    for axis in axes:
        if axis.name in found:
            raise UsageError(
                f"--axis {axis.name}: given twice (a short option counts); give it once, with "
                "commas between the values"
            )
        found[axis.name] = axis
    return Grid(ordered(found.values()), product)


def ordered(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """In the order of KINDS, then the knobs as they come."""
    names = list(KINDS)
    return tuple(
        sorted(axes, key=lambda axis: names.index(axis.name) if axis.name in KINDS else len(names))
    )


def in_bench_words(message: str) -> str:
    """A message of the planner with the options of a bench."""
    return re.sub(r"(?<!\S)-n (?=\d)", "--axis n=", message.replace("--policy ", "--policies "))


def axes_of(choices: Choices) -> tuple[list[Axis], Choices]:
    """The options of a plan as axes of one value, and those that are not axes."""
    rest = Choices(**choices)
    found: list[Axis] = []
    if "smt" in choices:
        found.append(Axis("smt", ("on" if rest.pop("smt") else "off",)))
    if (coordinator := rest.pop("coordinator", None)) is not None:
        reserved = coordinator.kind is CoordinatorKind.RESERVED
        own = f":{coordinator.cores}" if reserved else ""
        found.append(Axis("coordinator", (f"{coordinator.kind}{own}",)))
    if (count := rest.pop("count", None)) is not None:
        found.append(Axis("n", (str(count),)))
    words = {
        "memory": rest.pop("memory", None),
        "placement": rest.pop("placement", None),
        "malloc": rest.pop("malloc", None),
        "thp": rest.pop("thp", None),
    }
    found += [Axis(name, (str(word),)) for name, word in words.items() if word is not None]
    return found, rest


def _spelled(name: str, value: str, option: str) -> str:
    kind = KINDS[name]
    try:
        choices = kind.choose(value)
    except ValueError:
        raise UsageError(
            f"{option}: {value!r} is not a value of {name}; use {kind.takes}"
        ) from None
    number = choices.get("count") or choices.get("cores")
    return str(number or (int(value) if name == "streams" else value))


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 7 and int(text)):
        raise ValueError(text)
    return int(text)
