"""SingleStore: one leaf per slot, each started through numactl. Rendered, not run. Pure.

Sources: SingleStore's public documentation, read in parts and not of a single version.
- "Configuring SingleStore for NUMA": one leaf per NUMA node, each bound with numactl; aggregators
  unbound.
- "sdb-admin create-node", "list-nodes", "update-config": variables that nodes share are set through
  the master aggregator.
- "memsqlctl optimize": 90 % of the memory divided among the leaves, one partition per core,
  --bind-to-l3.
- The support article "Configuring NUMA for SingleStore": the engine does not know NUMA, so each
  memsqld is bound from outside.
The flags of memsqld_safe are those of SingleStore's public container images.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from atoll.engines.facts import EngineFacts
from atoll.engines.rendered import Rendering, Target, coordinator_bytes, ports_from
from atoll.errors import UsageError
from atoll.schema.plan import EngineTraits, Plan, Policy, Slot
from atoll.schema.size import MIB, gib

_TRAITS = EngineTraits(
    name="singlestore",
    distributed=True,
    parallel_query=True,
    has_coordinator=True,
    jvm=False,
    heap_ratio=0.9,
    ratio_source="SingleStore, memsqlctl optimize: maximum_memory is 90 % of the memory",
    min_heap_bytes=1024 * MIB,
    # memsqlctl optimize gives a quarter to aggregators on a leaf's host; this is enough to start.
    coordinator_bytes=4096 * MIB,
    overhead_bytes=0,  # maximum_memory holds all of a node
)


@dataclass(frozen=True, slots=True)
class SingleStoreEngine:
    """See `atoll.engines.rendered.RenderedEngine`."""

    traits: ClassVar[EngineTraits] = _TRAITS
    facts: ClassVar[EngineFacts] = EngineFacts(account="memsql")
    policy: ClassVar[Policy] = Policy.WIN

    def render(self, plan: Plan, target: Target, places: Sequence[Sequence[str]]) -> Rendering:
        if any(slot.cpus is None for slot in plan.slots):
            raise UsageError(
                "singlestore under wim is SingleStore as it is installed; there is nothing to bind"
            )
        ports_from(target.port_base, len(plan.slots))
        scripts = {
            f"bin/leaf-{slot.index}.sh": _start(slot, target, places[slot.index])
            for slot in plan.slots
        }
        scripts["create-leaves.sh"] = _create(plan, target)
        return Rendering(
            files={
                "plan.json": plan.model_dump_json(indent=2) + "\n",
                "README.md": _readme(plan, target, places),
            },
            scripts=scripts,
        )


def _leaf(slot: Slot, target: Target) -> str:
    return f"{target.data}/leaf-{slot.index}"


def _port(slot: Slot, target: Target) -> int:
    return target.port_base + slot.index


def _start(slot: Slot, target: Target, place: Sequence[str]) -> str:
    config = f"{_leaf(slot, target)}/memsql.cnf"
    return (
        "#!/bin/sh -e\n"
        "# Rendered, not run. Instead of 'memsqlctl start-node', which would not place it.\n"
        'server=$(dirname "$(readlink -f "$(command -v memsqlctl)")")\n'
        f'exec {shlex.join(place)} "$server/memsqld_safe" --auto-restart disable \\\n'
        f'  --defaults-file {shlex.quote(config)} --memsqld "$server/memsqld"\n'
    )


def _create(plan: Plan, target: Target) -> str:
    lines = [
        "#!/bin/sh -e",
        "# Rendered, not run. On the leaves' host, after sdb-deploy has set up the cluster.",
        "# The nodes' root password comes from MEMSQL_PASSWORD and is in no argument list.",
        ': "${MEMSQL_PASSWORD:?set it to the password of the root user of the nodes}"',
    ]
    for slot in plan.slots:
        folder = shlex.quote(_leaf(slot, target))
        memory = slot.heap_bytes // MIB
        lines += [
            "",
            f"sdb-admin create-node --yes --host 127.0.0.1 --port {_port(slot, target)} "
            f"--base-install-dir {folder}",
            "node=$(sdb-admin list-nodes -q -r unknown)",
            'sdb-admin add-leaf --yes --memsql-id "$node"',
            f'sdb-admin update-config --yes --memsql-id "$node" --key maximum_memory '
            f"--value {memory}",
            'sdb-admin stop-node --yes --memsql-id "$node"  # bin/ starts it in its place',
        ]
    partitions = min(slot.threads for slot in plan.slots)
    lines += [
        "",
        "master=$(sdb-admin list-nodes -q -r master)",
        "# By default it would take 90 % of the host, beside the leaves.",
        'sdb-admin update-config --yes --memsql-id "$master" --key maximum_memory '
        f"--value {coordinator_bytes(plan, _TRAITS) // MIB}",
        'sdb-admin update-config --yes --memsql-id "$master" --set-global '
        f"--key default_partitions_per_leaf --value {partitions}",
    ]
    return "\n".join(lines) + "\n"


def _readme(plan: Plan, target: Target, places: Sequence[Sequence[str]]) -> str:
    rows = [
        f"| leaf-{slot.index} | `{' '.join(places[slot.index][1:-1])}` "
        f"| {gib(slot.heap_bytes)} | {slot.threads} | {_port(slot, target)} |"
        for slot in plan.slots
    ]
    return _README.format(
        name=target.name,
        user=target.user,
        rows="\n".join(rows),
        own=gib(coordinator_bytes(plan, _TRAITS)),
    )


_README = """\
# {name}: SingleStore, a leaf per slot

**Rendered, not run**: nobody has run these files. They rest on SingleStore's public documentation,
read in parts and of no one version: *Configuring SingleStore for NUMA*, *create-node*, *optimize*.
Compare them with the documentation of yours.

| leaf | place (numactl) | maximum_memory | cores | port |
|---|---|---|---|---|
{rows}

1. `create-leaves.sh` creates the leaves, gives each its memory, and stops them.
2. `bin/leaf-N.sh`, as the user `{user}`, starts each where the plan has it.
3. `atoll inspect PID` says where the threads and the memory of each really are.

SingleStore can bind by itself, to what it sees of the machine: `sdb-admin optimize` binds leaves to
NUMA nodes (as `--policy win`), `memsqlctl optimize --bind-to-l3` to L3 caches (as `--policy wicp`);
then `sdb-admin restart-node --all` is enough. Do one or the other. Aggregators need no binding.

A setting and why:

- `maximum_memory`: a leaf's share, and {own} for the master aggregator, which is on the leaves'
  host. By default each of them would take 90 % of the host.
- `default_partitions_per_leaf`: a partition per core of the smallest leaf, as `optimize` sets it.
"""
