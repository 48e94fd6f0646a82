"""Greenplum: one primary segment per slot, by default a core each. Rendered, not run. Pure.

Sources: Greenplum's public documentation, read in parts and not of a single version, with settings
named as in Greenplum 7: "gpinitsystem" (an entry in DATA_DIRECTORY per primary segment), "The
Segments" (as many as effective CPUs or cores), "gp_vmem_protect_limit", "shared_buffers",
"gpconfig", "gp_resqueue_priority_cpucores_per_segment".

Greenplum starts its segments itself and cannot place them. So a script places the running servers,
and the processes of later queries inherit the mask. Memory that a segment touched before, above all
its shared buffers, stays where it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from atoll.engines.facts import EngineFacts
from atoll.engines.rendered import Rendering, Target, coordinator_bytes, ports_from
from atoll.errors import UsageError
from atoll.schema.cpulist import format_cpulist
from atoll.schema.plan import EngineTraits, Plan, Policy, Slot
from atoll.schema.size import MIB, gib

_PREFIX = "gpseg"

_TRAITS = EngineTraits(
    name="greenplum",
    distributed=True,
    parallel_query=False,  # a slice of a query is one process on each segment
    has_coordinator=True,
    jvm=False,
    heap_ratio=0.9,
    ratio_source="Greenplum, gp_vmem_protect_limit: 90 % of the memory, by segments",
    min_heap_bytes=512 * MIB,
    coordinator_bytes=2048 * MIB,
    overhead_bytes=128 * MIB,  # shared_buffers' default, which the limit does not count
)


@dataclass(frozen=True, slots=True)
class GreenplumEngine:
    """See `atoll.engines.rendered.RenderedEngine`."""

    traits: ClassVar[EngineTraits] = _TRAITS
    facts: ClassVar[EngineFacts] = EngineFacts(account="gpadmin")
    policy: ClassVar[Policy] = Policy.WIC

    def render(self, plan: Plan, target: Target, places: Sequence[Sequence[str]]) -> Rendering:
        if any(slot.cpus is None for slot in plan.slots):
            raise UsageError(
                "greenplum under wim has one segment and no place; give another --policy"
            )
        ports_from(target.port_base, 1 + len(plan.slots))
        return Rendering(
            files={
                "gpinitsystem_config": _config(plan, target),
                "hostfile_gpinitsystem": "localhost\n",
                "plan.json": plan.model_dump_json(indent=2) + "\n",
                "README.md": _readme(plan, target),
            },
            scripts={
                "configure.sh": _configure(plan),
                "place-segments.sh": _place(plan, target),
            },
            folders=("data/coordinator", *(f"data/{_name(slot)}" for slot in plan.slots)),
        )


def _name(slot: Slot) -> str:
    return f"primary-{slot.index}"


def _data(slot: Slot, target: Target) -> str:
    return f"{target.data}/{_name(slot)}"


def _config(plan: Plan, target: Target) -> str:
    folders = "\n  ".join(shlex.quote(_data(slot, target)) for slot in plan.slots)
    coordinator = shlex.quote(f"{target.data}/coordinator")
    return (
        "# Rendered, not run. gpinitsystem -c gpinitsystem_config\n"
        f"ARRAY_NAME={shlex.quote(target.name)}\n"
        f"SEG_PREFIX={_PREFIX}\n"
        "COORDINATOR_HOSTNAME=localhost\n"
        f"COORDINATOR_DIRECTORY={coordinator}\n"
        f"COORDINATOR_PORT={target.port_base}\n"
        "# Segment N listens on PORT_BASE + N; a primary for each folder below.\n"
        f"PORT_BASE={target.port_base + 1}\n"
        f"declare -a DATA_DIRECTORY=(\n  {folders}\n)\n"
        f"MACHINE_LIST_FILE={shlex.quote(f'{target.folder}/hostfile_gpinitsystem')}\n"
        "TRUSTED_SHELL=ssh\n"
        "ENCODING=UNICODE\n"
    )


def _limit_mib(plan: Plan) -> int:
    """One number for all segments; so the smallest slot's."""
    return min(slot.heap_bytes for slot in plan.slots) // MIB


def _configure(plan: Plan) -> str:
    cores = min(slot.threads for slot in plan.slots)
    own = coordinator_bytes(plan, _TRAITS) // MIB
    return (
        "#!/bin/sh -e\n"
        "# Rendered, not run. As the cluster's administrator, once it is up.\n"
        "# -m is for the coordinator, which is on this host too.\n"
        f"gpconfig -c gp_vmem_protect_limit -v {_limit_mib(plan)} -m {own}\n"
        f"gpconfig -c gp_resqueue_priority_cpucores_per_segment -v {cores} "
        f"-m {plan.total_threads}\n"
        "gpstop -ar\n"
    )


def _place(plan: Plan, target: Target) -> str:
    lines = [
        "#!/bin/sh -e",
        "# Rendered, not run. After each gpstart: every server of a segment to its CPUs.",
        "place() {  # place CPUS FOLDER",
        '  for pid_file in "$2"/*/postmaster.pid; do',
        '    server=$(head -n 1 "$pid_file")',
        '    for pid in "$server" $(pgrep -P "$server"); do',
        '      taskset -a -c -p "$1" "$pid" >/dev/null || [ ! -e "/proc/$pid" ]  # it has ended',
        "    done",
        "  done",
        "}",
        "",
    ]
    for slot in plan.slots:
        cpus = format_cpulist(slot.cpus or ())
        lines.append(f"place {cpus} {shlex.quote(_data(slot, target))}")
    return "\n".join(lines) + "\n"


def _readme(plan: Plan, target: Target) -> str:
    rows = [
        f"| {_name(slot)} | {format_cpulist(slot.cpus or ())} | {format_cpulist(slot.nodes)} "
        f"| {target.port_base + 1 + slot.index} |"
        for slot in plan.slots
    ]
    return _README.format(
        name=target.name,
        user=target.user,
        folder=target.folder,
        count=len(plan.slots),
        limit=_limit_mib(plan),
        limit_said=gib(_limit_mib(plan) * MIB),
        own=gib(coordinator_bytes(plan, _TRAITS)),
        rows="\n".join(rows),
    )


_README = """\
# {name}: Greenplum, a segment per slot

**Rendered, not run**: nobody has run these files. They rest on Greenplum's public documentation,
read in parts and of no one version: *gpinitsystem*, *The Segments*, *gp_vmem_protect_limit*.
Settings are named as in Greenplum 7; in 6 `COORDINATOR_...` is `MASTER_...`. Compare them with the
documentation of yours.

As the administrator `{user}`, with this folder at `{folder}`:

1. `gpinitsystem -c gpinitsystem_config` makes the coordinator and {count} primaries, without
   mirrors: one machine cannot mirror itself.
2. `configure.sh` sets what the segments may take, and restarts.
3. `place-segments.sh`, after each start, puts each segment on its CPUs.
4. `atoll inspect PID` says where threads and memory really are.

Greenplum cannot start a segment in a place. What it touched before step 3, its shared buffers
above all, may lie on another node; work memory of later queries does not.

| segment | CPUs | node | port |
|---|---|---|---|
{rows}

A setting and why:

- `gp_vmem_protect_limit` {limit} ({limit_said}): what all processes of one segment may take, its
  share of the memory, and {own} for the coordinator, so that all of them fit.
- `gp_resqueue_priority_cpucores_per_segment`: the cores that a segment has. With the default of 4
  priorities of queries are weighed wrongly.

Both hold only where resource queues are what manages resources (`gp_resource_manager`). With
resource groups the groups' own limits hold; give them as much.
"""
