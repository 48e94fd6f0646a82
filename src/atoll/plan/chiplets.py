"""Applies chiplets that the topology does not show: from the user, a measurement or a catalog.

Chiplets can be hidden: Intel's tiles share one L3, and hypervisors hide L3 (olap-on-chiplets
section 2.4 sees Sapphire Rapids' four tiles in bandwidth only). They are then given as sets of PUs.
`assign_chiplets` checks the sets and puts them into the machine in place of the topology's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from atoll.errors import UsageError
from atoll.schema.cpulist import format_cpulist, parse_cpulist
from atoll.schema.machine import Chiplet, ChipletSource, Core, Machine

_HELP = 'use sets of CPUs ("0-13;14-27") or a size (cores=14)'


def parse_chiplets(text: str, machine: Machine) -> list[set[int]]:
    """Parses '0-13;14-27' (OS indices of PUs) or 'cores=14' (14 neighbours within each node).

    Either form includes SMT siblings. Raises UsageError.
    """
    name, equals, number = text.partition("=")
    if equals:
        if name.strip() != "cores" or not re.fullmatch(r"\s*\d{1,9}\s*", number, re.ASCII):
            raise UsageError(f"--chiplets {text}: not understood; {_HELP}")
        return _of_size(int(number), machine)
    sets: list[set[int]] = []
    for part in text.split(";"):
        try:
            pus = set(parse_cpulist(part))
        except ValueError:
            raise UsageError(
                f"--chiplets: {part.strip()!r} is not a list of CPUs; {_HELP}"
            ) from None
        if not pus:
            raise UsageError(f"--chiplets {text!r}: a set is empty; {_HELP}")
        sets.append(pus)
    return sets


def assign_chiplets(
    machine: Machine, sets: Iterable[Collection[int]], source: ChipletSource
) -> Machine:
    """The machine with these chiplets in place of its own.

    A set contains OS indices of PUs, and takes all PUs of every core that it names. Raises
    UsageError unless the sets are disjoint and each has at least two cores, is within one package
    and is smaller than it.
    """
    core_of = {pu: core for core in machine.cores for pu in core.pus}
    owner: dict[int, int] = {}  # core -> the set that contains it
    members: list[list[Core]] = []
    for number, pus in enumerate(sets):
        unknown = [pu for pu in pus if pu not in core_of]
        if unknown:
            raise UsageError(
                f"chiplet {format_cpulist(pus)}: this machine does not have CPUs "
                f"{format_cpulist(unknown)}; its CPUs are {format_cpulist(machine.pus)}"
            )
        cores = sorted({core_of[pu].index: core_of[pu] for pu in pus}.items())
        for index, core in cores:
            if owner.setdefault(index, number) != number:
                raise UsageError(
                    f"chiplet {format_cpulist(pus)}: CPUs {format_cpulist(core.pus)} (one core) "
                    "are already in another chiplet; make the sets disjoint"
                )
        members.append([core for _, core in cores])
        _check_extent(machine, members[-1], format_cpulist(pus))
    members.sort(key=lambda cores: cores[0].index)
    chiplets = tuple(_chiplet(machine, index, cores, source) for index, cores in enumerate(members))
    # The topology's information on the replaced chiplets no longer applies.
    warnings = tuple(note for note in machine.warnings if note.code != "core-outside-chiplets")
    allowed = frozenset(machine.allowed.pus)
    counted = sum(not allowed.isdisjoint(chiplet.pus) for chiplet in chiplets)
    return machine.model_copy(
        update={
            "chiplets": chiplets,
            "warnings": warnings,
            "summary": machine.summary.model_copy(update={"chiplets": counted}),
        }
    )


def _of_size(size: int, machine: Machine) -> list[set[int]]:
    """Neighbouring cores, `size` at a time, within each package and node."""
    homes: dict[tuple[int | None, int | None], list[Core]] = {}
    for core in sorted(machine.cores, key=lambda core: core.index):
        homes.setdefault((core.package, core.node), []).append(core)
    if size < 2:
        raise UsageError(f"--chiplets cores={size}: a chiplet has at least 2 cores")
    for (package, node), cores in homes.items():
        if len(cores) % size:
            place = f"package {package}" if node is None else f"node {node}"
            raise UsageError(
                f"--chiplets cores={size}: does not divide the {len(cores)} cores of {place}; "
                'give the sets instead, for example "0-13;14-27"'
            )
    return [
        {pu for core in cores[start : start + size] for pu in core.pus}
        for cores in homes.values()
        for start in range(0, len(cores), size)
    ]


def _check_extent(machine: Machine, cores: list[Core], named: str) -> None:
    if len(cores) < 2:
        raise UsageError(f"chiplet {named}: has one core; a chiplet has at least 2")
    packages = sorted({-1 if core.package is None else core.package for core in cores})
    if len(packages) > 1:
        raise UsageError(
            f"chiplet {named}: spans packages {format_cpulist(packages)}; "
            "a chiplet is within one package"
        )
    whole = sum(core.package == cores[0].package for core in machine.cores)
    if len(cores) == whole:
        raise UsageError(
            f"chiplet {named}: covers a whole package ({whole} cores); a chiplet is smaller"
        )


def _chiplet(machine: Machine, index: int, cores: list[Core], source: ChipletSource) -> Chiplet:
    pus = frozenset(pu for core in cores for pu in core.pus)
    nodes = {core.node for core in cores}
    return Chiplet(
        index=index,
        pus=tuple(sorted(pus)),
        cores=tuple(core.index for core in cores),
        node=nodes.pop() if len(nodes) == 1 else None,
        package=cores[0].package,
        source=source,
        l3_bytes=sum(l3.size_bytes for l3 in machine.l3 if l3.pus and pus.issuperset(l3.pus)),
    )
