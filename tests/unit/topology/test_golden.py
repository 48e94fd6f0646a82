"""Recorded and hand-made machines (tests/golden/machines) against what was checked by hand, and
against hwloc's own tools."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from atoll import _native
from atoll.host.topology import read_machine
from atoll.schema.base import parse
from atoll.schema.machine import Machine, machine_of
from tests.parts.paths import GOLDEN

MACHINES = sorted((GOLDEN / "machines").glob("*.xml"))
CAPTURES = sorted(path for path in (GOLDEN / "captures").iterdir() if path.is_dir())
EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text())


def digest(machine: Machine) -> dict[str, Any]:
    """What of a machine stands in expected.json, short enough to be checked by eye."""
    return {
        "summary": machine.summary.model_dump(),
        "chiplets": [
            f"{chiplet.source}: PUs {cpu_list(chiplet.pus)}, {len(chiplet.cores)} cores, "
            f"node {chiplet.node}, package {chiplet.package}, L3 {chiplet.l3_bytes}"
            for chiplet in machine.chiplets
        ],
        "nodes": [
            f"{node.os_index}: PUs {cpu_list(node.pus)}, {node.memory_bytes} bytes {node.subtype}"
            for node in machine.nodes
        ],
        "allowed": cpu_list(machine.allowed.pus),
        "offline": cpu_list(machine.offline_cpus),
        "nics": [f"{nic.name} {nic.pci} node {nic.node}" for nic in machine.nics],
        "distances": [list(row) for row in machine.distances.values] if machine.distances else None,
        "warnings": [notice.code for notice in machine.warnings],
    }


def cpu_list(cpus: tuple[int, ...]) -> str:
    """The kernel's list format, "0-3,8"."""
    parts: list[str] = []
    first = 0
    for place, cpu in enumerate(cpus):
        if place + 1 < len(cpus) and cpus[place + 1] == cpu + 1:
            continue
        parts.append(str(cpu) if cpus[first] == cpu else f"{cpus[first]}-{cpu}")
        first = place + 1
    return ",".join(parts)


@pytest.mark.parametrize("path", MACHINES + CAPTURES, ids=lambda path: path.stem)
def test_expected(path: Path) -> None:
    assert digest(read_machine(str(path))) == EXPECTED[path.stem]


def test_every_expectation_has_its_machine() -> None:
    assert set(EXPECTED) == {path.stem for path in MACHINES + CAPTURES}


@pytest.mark.parametrize("path", MACHINES + CAPTURES, ids=lambda path: path.stem)
def test_hwloc_counts_the_same(path: Path) -> None:
    summary = read_machine(str(path)).summary
    assert (
        summary.packages,
        summary.numa_nodes,
        summary.l3,
        summary.cores,
        summary.pus,
    ) == hwloc_counts(path)


def hwloc_counts(path: Path) -> tuple[int, ...]:
    if shutil.which("hwloc-info") is None:
        pytest.skip("hwloc-info is not installed (Debian package hwloc)")
    form = ["--if", "fsroot"] if path.is_dir() else []
    told = subprocess.run(
        ["hwloc-info", "-i", str(path), *form], capture_output=True, text=True, check=True
    ).stdout
    counts = {kind: int(number) for number, kind in re.findall(r"depth.*?: +(\d+) (\w+) ", told)}
    return tuple(counts.get(kind, 0) for kind in ("Package", "NUMANode", "L3Cache", "Core", "PU"))


@pytest.mark.parametrize("path", MACHINES + CAPTURES, ids=lambda path: path.stem)
def test_a_machine_holds_together(path: Path) -> None:
    """What plans rely on: sets within sets, indices that point somewhere, no PU twice."""
    machine = read_machine(str(path))
    pus = set(machine.pus)
    assert len(machine.pus) == len(pus)
    assert pus.issuperset(machine.allowed.pus)
    assert [core.index for core in machine.cores] == list(range(len(machine.cores)))
    for core in machine.cores:
        if core.package is not None:
            assert set(core.pus) <= set(machine.packages[core.package].pus)
        if core.l3 is not None:
            assert set(core.pus) <= set(machine.l3[core.l3].pus)
        if core.node is not None:
            assert set(core.pus) <= set(machine.node_by_os_index[core.node].pus)
    in_chiplets = [pu for chiplet in machine.chiplets for pu in chiplet.pus]
    assert len(in_chiplets) == len(set(in_chiplets))
    for chiplet in machine.chiplets:
        assert len(chiplet.cores) >= 2
        assert set(chiplet.pus) == {pu for core in chiplet.cores for pu in machine.cores[core].pus}
        whole = pus if chiplet.package is None else set(machine.packages[chiplet.package].pus)
        assert set(chiplet.pus) < whole


def test_the_json_is_what_the_record_writes() -> None:
    """Order included: people and scripts read the native JSON and ours alike."""
    text = _native.discover("xml", str(GOLDEN / "machines/nics.xml"))
    machine = parse(Machine, text, where="text")  # what the library gives passes every check
    assert machine_of(json.loads(text)) == machine
    assert json.loads(text) == json.loads(machine.model_dump_json())
    assert list(json.loads(text)) == [field.name for field in fields(Machine)]
    assert list(json.loads(text))[:2] == ["summary", "chiplets"]


def test_machine_id_names_the_layout() -> None:
    milan = read_machine(str(GOLDEN / "machines/dual-milan.xml"))
    assert milan.machine_id == read_machine(str(GOLDEN / "machines/hwloc1.xml")).machine_id
    assert milan.model_copy(update={"memory_bytes": 1}).machine_id == milan.machine_id
    assert milan.machine_id != read_machine(str(GOLDEN / "machines/unequal.xml")).machine_id
