"""Places of atoll-exec, live and from a machine file: the mask that the child then has.

Placement on many nodes is proved in the emulated guest; place syntax is compared with hwloc-calc
in exec_places_hwloc_test.cpp.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.parts.exec import CPUS, EXEC, STATUS, machine_file, mask_of, refused, run


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not an atoll/machine"),
        ('{"format": "atoll/plan", "version": 1}', "not an atoll/machine"),
        ('{"format": "atoll/machine", "version": 2}', "version 1, not 2"),
        ('{"format": "atoll/machine", "version": 1}', "packages"),
        ('{"format": "atoll/machine", "version": 1, "packages": [{"index": 0}]}', "pus"),
        (
            '{"format": "atoll/machine", "version": 1, "packages": [{"index": 0, "pus": [-1]}]}',
            "out of range",
        ),
        (
            '{"format": "atoll/machine", "version": 1, "packages": [{"index": 7, "pus": [0]}]}',
            "order",
        ),
    ],
)
def test_bad_machine_file_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "machine.json"
    path.write_text(text)
    assert says in refused("--machine", str(path), "core:0", "--", "true")


def test_live_places() -> None:
    everything = run(*STATUS).stdout
    for place in ("all", "machine:0", "core:all", "package:all", "pu:0-"):
        done = run(EXEC, place, "--", *STATUS)
        assert done.stdout == everything, (place, done.stderr)
    first = run("hwloc-calc", "--po", "-I", "pu", "core:0").stdout.strip()
    assert mask_of(run(EXEC, "core:0", "--", *STATUS)) == {int(pu) for pu in first.split(",")}


def test_chiplets_of_a_machine_file(tmp_path: Path) -> None:
    one, other = CPUS[:2]
    machine = ["--machine", machine_file(tmp_path, [[one], [other]])]
    assert mask_of(run(EXEC, *machine, "chiplet:1", "--", *STATUS)) == {other}
    assert mask_of(run(EXEC, *machine, "chiplet:0", "chiplet:1", "--", *STATUS)) == {one, other}
    assert mask_of(run(EXEC, *machine, "chiplet:0-1", "~chiplet:0", "--", *STATUS)) == {other}
    assert mask_of(run(EXEC, "-C", str(one), *machine, "all", "--", *STATUS)) == {one}
    assert "none in common" in refused("-C", str(one), *machine, "chiplet:1", "--", "true")
    assert "has no chiplet:2; it has chiplet:0-1" in refused(*machine, "chiplet:2", "--", "true")


def test_cpus_outside_the_mask_are_named(tmp_path: Path) -> None:
    machine = ["--machine", machine_file(tmp_path, [[0, 1, 4096, 4097], [4098, 4099]])]
    line = refused(*machine, "chiplet:0", "--", "true")
    assert "CPUs 4096-4097 are offline, or outside" in line
    assert "allowed CPUs: " in line
    assert mask_of(run(EXEC, *machine, "chiplet:0", "xall", "--", *STATUS)) <= set(CPUS)

    def narrow() -> None:
        os.sched_setaffinity(0, {CPUS[0]})

    machine = ["--machine", machine_file(tmp_path, [[CPUS[0]], [CPUS[1]]])]
    line = refused(*machine, "chiplet:1", "--", "true", preexec=narrow)
    assert f"CPUs {CPUS[1]} are offline, or outside" in line
    assert f"allowed CPUs: {CPUS[0]}" in line


def test_the_topology_library_is_loaded_only_for_places_that_need_it(tmp_path: Path) -> None:
    """A regular machine's packages, nodes, L3s and chiplets are read without hwloc; which
    machines are regular stands in quick_test.cpp."""

    def loaded(*flags: str) -> bool:
        done = run(EXEC, *flags, env={"LD_DEBUG": "files"})
        assert done.returncode == 0, done.stderr
        return "hwloc" in done.stderr

    machine = machine_file(tmp_path, [CPUS[:1], CPUS[1:2]])
    assert not loaded("-C", "0", "-m", "0", "--no-thp", "true")
    assert not loaded("--machine", machine, "chiplet:0", "--", "true")
    assert loaded("core:0", "--", "true")
    if Path(f"/sys/devices/system/cpu/cpu{CPUS[0]}/cache/index3/shared_cpu_map").exists():
        assert not loaded("package:all", "xall", "--", "true")
