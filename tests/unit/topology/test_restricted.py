"""Machines recorded where a cgroup or a mask left packages, nodes, L3s or cores without CPUs: they
are counted as in hwloc (test_golden.py), and nothing is planned where nothing can run."""

from __future__ import annotations

from pathlib import Path

import pytest

from atoll.engines import registry
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.report.machine.svg import machine_svg
from atoll.report.machine.text import machine_picture
from atoll.schema.consistency import contradiction
from atoll.schema.plan import Policy
from tests.parts.paths import GOLDEN

MACHINES = sorted((GOLDEN / "machines").glob("restricted-*.xml"))


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
@pytest.mark.parametrize("policy", ["auto", *Policy])
def test_no_plan_uses_what_has_no_cpus(path: Path, policy: str) -> None:
    machine = read_machine(str(path))
    assert {"without-cpus"} <= {warning.code for warning in machine.warnings}
    with_cpus = {node.os_index for node in machine.nodes if node.pus}
    plan = make_plan(machine, registry.get("duckdb").traits, policy)
    for slot in plan.slots:
        assert slot.cores > 0
        assert slot.cpus is None or (slot.cpus and set(slot.cpus) <= set(machine.pus))
        assert set(slot.nodes) <= with_cpus
        assert set(slot.memory_nodes) <= with_cpus
        assert all(machine.packages[package].pus for package in slot.packages)
    assert sum(slot.cores for slot in plan.slots) == len(machine.cores)


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_the_machine_file_and_the_pictures(path: Path, tmp_path: Path) -> None:
    machine = read_machine(str(path))
    assert contradiction(machine) == ""
    file = tmp_path / "machine.json"
    file.write_text(machine.model_dump_json())
    assert read_machine(str(file)) == machine
    text = "\n".join("".join(span.text for span in line) for line in machine_picture(machine))
    assert "memory only" in text  # the nodes that lost their CPUs
    assert machine_svg(machine)


def test_the_cores_left_are_the_cores_with_cpus() -> None:
    machine = read_machine(str(GOLDEN / "machines/restricted-core.xml"))
    assert machine.summary.cores == 8  # as in hwloc-info
    assert [core.pus for core in machine.cores] == [(0, 1), (4, 5)]
