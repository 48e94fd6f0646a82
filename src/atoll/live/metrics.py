"""A look at all deployments as OpenMetrics 1.0 text, for Prometheus. Pure.

Ratios lie between 0 and 1. Unknown values have no sample. The names are an interface: the
dashboard, the alert rules and users' own use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from atoll.schema.deployment import State
from atoll.schema.live import DeploymentView, LiveView, SlotView
from atoll.schema.text import printable

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Samples = Iterator[tuple[Mapping[str, str], float | None]]


class Family(NamedTuple):
    """`name` ends with `unit`; the samples of a counter have '_total' after it."""

    name: str
    kind: Literal["gauge", "counter"]
    unit: str
    help: str
    samples: Callable[[LiveView], Samples]


def open_metrics(view: LiveView, look_age_s: float) -> str:
    """`look_age_s`: how long ago the view was made."""
    lines = []
    for family in (*FAMILIES, _look_age(look_age_s)):
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [f"# UNIT {family.name} {family.unit}"] if family.unit else []
        lines.append(f"# HELP {family.name} {family.help}")
        suffix = "_total" if family.kind == "counter" else ""
        lines += [
            f"{family.name}{suffix}{_labels(labels)} {value:.12g}"
            for labels, value in family.samples(view)
            if value is not None
        ]
    return "\n".join([*lines, "# EOF", ""])


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    # Line breaks are not printable, and so are replaced.
    return printable(value).replace("\\", "\\\\").replace('"', '\\"')


def _of_view(value: Callable[[LiveView], float | None]) -> Callable[[LiveView], Samples]:
    def samples(view: LiveView) -> Samples:
        yield {}, value(view)

    return samples


def _of_slots(value: Callable[[SlotView], float | None]) -> Callable[[LiveView], Samples]:
    def samples(view: LiveView) -> Samples:
        for one in view.deployments:
            for slot in one.slots:
                yield _place(one, slot), value(slot)

    return samples


def _place(one: DeploymentView, slot: SlotView) -> dict[str, str]:
    return {
        "deployment": one.name,
        "slot": "coordinator" if slot.slot is None else str(slot.slot),
    }


def _up(view: LiveView) -> Samples:
    for one in view.deployments:
        labels = {"deployment": one.name, "engine": one.engine, "policy": one.policy}
        yield labels, float(one.state is State.READY)


def _drift(view: LiveView) -> Samples:
    for one in view.deployments:
        for code, count in one.drift_by_code.items():
            yield {"deployment": one.name, "code": code}, count


def _pages(view: LiveView) -> Samples:
    for one in view.deployments:
        for slot in one.slots:
            for node, size in slot.bytes_by_node.items():
                yield {**_place(one, slot), "node": str(node)}, size


def _ages(view: LiveView) -> Samples:
    for one in view.deployments:
        for slot in one.slots:
            place = _place(one, slot)
            yield {**place, "figures": "masks"}, slot.masks_age_s
            yield {**place, "figures": "runs"}, slot.runs_age_s
            yield {**place, "figures": "memory"}, slot.memory_age_s


def _look_age(look_age_s: float) -> Family:
    """Not a time of day: the clocks of two machines can differ."""
    return Family(
        "atoll_watch_look_age_seconds",
        "gauge",
        "seconds",
        "Age of the last look that succeeded.",
        _of_view(lambda _: look_age_s),
    )


def _migrations(slot: SlotView) -> float | None:
    return None if slot.migrations_per_s is None else slot.migrations


FAMILIES = (
    Family("atoll_deployment_ready", "gauge", "",
           "1 if the deployment is ready, else 0.", _up),
    Family("atoll_drift_findings", "gauge", "",
           "Threads, pages and processes that are not where the plan put them.", _drift),
    Family("atoll_slot_drift_findings", "gauge", "",
           "Threads and pages of a slot that are not where the plan put them.",
           _of_slots(lambda slot: slot.drift)),
    Family("atoll_slot_threads", "gauge", "",
           "Threads of a slot's processes.", _of_slots(lambda slot: slot.threads)),
    Family("atoll_slot_threads_outside", "gauge", "",
           "Threads that may run outside of the slot.", _of_slots(lambda slot: slot.outside)),
    Family("atoll_slot_cpu_seconds", "counter", "seconds",
           "CPU time of a slot's processes since the watch began.",
           _of_slots(lambda slot: slot.cpu_seconds)),
    Family("atoll_slot_home_ratio", "gauge", "ratio",
           "Share of a slot's CPU time on its own CPUs.", _of_slots(lambda slot: slot.home_share)),
    Family("atoll_slot_local_memory_ratio", "gauge", "ratio",
           "Share of a slot's pages on the node of the threads that use them.",
           _of_slots(lambda slot: slot.local_share)),
    Family("atoll_slot_migrations", "counter", "",
           "Moves of a slot's threads to another CPU since the watch began.",
           _of_slots(_migrations)),
    Family("atoll_slot_memory_bytes", "gauge", "bytes",
           "Resident memory of a slot by node.", _pages),
    Family("atoll_slot_memory_bytes_per_second", "gauge", "",
           "Memory bandwidth of a slot, where resctrl counts it.",
           _of_slots(lambda slot: slot.bytes_per_s)),
    Family("atoll_slot_local_memory_bytes_per_second", "gauge", "",
           "Bandwidth of a slot to memory of its own node, where resctrl counts it.",
           _of_slots(lambda slot: slot.local_bytes_per_s)),
    Family("atoll_figures_age_seconds", "gauge", "seconds",
           "Age of a slot's figures, from the last look at masks, runs or memory.", _ages),
    Family("atoll_watch_cpu_ratio", "gauge", "ratio",
           "Share of one core that the agent's looks use.", _of_view(lambda view: view.cost)),
    Family("atoll_watch_unreadable_records", "gauge", "",
           "Records of deployments that cannot be read.", _of_view(lambda view: len(view.notices))),
)  # fmt: skip
