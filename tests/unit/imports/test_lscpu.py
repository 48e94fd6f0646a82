"""lscpu's output, from lscpu itself: it reads folders of ours (`-s`) in place of /sys."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.engines import registry
from atoll.errors import TopologyError
from atoll.host.topology import read_machine
from atoll.imports import description_of
from atoll.imports.description import Cpu, Description, sysfs_of
from atoll.plan import make_plan
from atoll.schema.machine import Machine
from tests.parts.imports import read_or_refused
from tests.parts.paths import GOLDEN

# With cores, and CPUs that nobody took away: what lscpu can say.
MACHINES = ("cpuless-node", "offline", "smt-siblings-far", "snc2-distances", "unequal")


def of_machine(machine: Machine) -> Description:
    """The machine as the kernel would show it to lscpu."""

    def shares(pu: int, level: int) -> dict[str, int]:
        caches = enumerate(c for c in machine.caches if c.kind == "unified" and c.level == level)
        return {f"L{level}": index for index, cache in caches if pu in cache.pus}

    return Description(
        kind="lscpu",
        cpus=tuple(
            Cpu(pu, core.index, core.package, core.node, shares(pu, 2) | shares(pu, 3))
            for core in machine.cores
            for pu in core.pus
        ),
        offline=machine.offline_cpus,
        cache_bytes={"L2": 512 << 10, "L3": 32 << 20},
        memory_bytes={node.os_index: node.memory_bytes for node in machine.nodes},
        architecture="x86_64",
        cpu_model="Test CPU",
    )


def numactl(machine: Machine) -> str:
    """What `numactl -H` prints."""
    lines = [f"available: {len(machine.nodes)} nodes"]
    for node in machine.nodes:
        lines += [
            f"node {node.os_index} cpus: {' '.join(map(str, node.pus))}",
            f"node {node.os_index} size: {node.memory_bytes >> 20} MB",
            f"node {node.os_index} free: 1 MB",
        ]
    if machine.distances is not None:
        lines += ["node distances:", "node " + " ".join(map(str, machine.distances.nodes))]
        for number, row in zip(machine.distances.nodes, machine.distances.values, strict=True):
            lines.append(f"{number:3}: " + " ".join(f"{value:3}" for value in row))
    return "\n".join(lines) + "\n"


def write(described: Description, root: Path) -> Path:
    for name, text in sysfs_of(described).items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    # lscpu reads the caches at every CPU, as the kernel shows them; hwloc needs those at the first.
    for shown in root.glob("sys/devices/system/cpu/cpu*/cache/index*"):
        bits = int((shown / "shared_cpu_map").read_text().replace(",", ""), 16)
        for number in (each for each in range(bits.bit_length()) if bits >> each & 1):
            own = root / f"sys/devices/system/cpu/cpu{number}/cache"
            own.mkdir(exist_ok=True)
            if not (own / shown.name).exists():
                (own / shown.name).symlink_to(shown)
    return root


def lscpu(root: Path, *options: str) -> str:
    command = ["lscpu", "-s", str(root), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read(text: str, folder: Path) -> Machine:
    path = folder / "lscpu.txt"
    path.write_text(text)
    return read_machine(str(path))


def refusal(text: str) -> str:
    with pytest.raises(TopologyError) as caught:
        description_of(text.encode(), "file")
    message = str(caught.value)
    assert message.startswith("file: ")
    assert "\n" not in message
    assert len(message) < 400
    return message


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_comes_back(name: str, tmp_path: Path) -> None:
    machine = read_machine(str(GOLDEN / f"machines/{name}.xml"))
    root = write(of_machine(machine), tmp_path / "root")
    found = read(lscpu(root) + lscpu(root, "-p") + numactl(machine), tmp_path)
    assert [core.pus for core in found.cores] == [core.pus for core in machine.cores]
    assert [l3.pus for l3 in found.l3] == [l3.pus for l3 in machine.l3]
    assert {node.os_index: node.pus for node in found.nodes} == {
        node.os_index: node.pus for node in machine.nodes
    }
    assert [package.pus for package in found.packages if package.pus] == [
        package.pus for package in machine.packages if package.pus
    ]
    assert [node.memory_bytes >> 20 for node in found.nodes] == [
        node.memory_bytes >> 20 for node in machine.nodes
    ]
    assert found.distances == machine.distances
    assert found.cpu_model == "Test CPU"
    assert {l3.size_bytes for l3 in found.l3} == {32 << 20 for _ in machine.l3}
    assert found.origin.kind == "lscpu"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small machine with SMT, two packages of two nodes, an L3 for two cores, a CPU offline."""
    cpus = [
        Cpu(pu, core, core // 4, core // 2, {"L1D": core, "L2": core, "L3": core // 2})
        for core in range(8)
        for pu in (core, core + 8)
        if pu != 15
    ]
    sizes = {"L1D": 32 << 10, "L2": 1280 << 10, "L3": 24 << 20}
    described = Description("lscpu", tuple(cpus), (15,), cache_bytes=sizes, cpu_model="Test CPU")
    return write(described, tmp_path_factory.mktemp("root"))


@pytest.mark.parametrize("sizes", [[], ["-J"], ["-C"], ["-C", "-J"], ["-B"]])
@pytest.mark.parametrize("table", [["-p"], ["-e"], ["-e", "-J"], ["-y", "-p", "-a"], ["-a", "-e"]])
def test_every_form_says_the_same(root: Path, table: list[str], sizes: list[str]) -> None:
    if "-J" in table and "-J" not in sizes:
        parts = [lscpu(root, *table), lscpu(root, *sizes)]  # JSON comes first
    else:
        parts = [lscpu(root, *sizes), lscpu(root, *table)]
    found = description_of("".join(parts).encode(), "file")
    assert found is not None
    shared = [
        {cpu.number for cpu in found.cpus if cpu.caches["L3"] == first.caches["L3"]}
        for first in found.cpus[:8:2]
    ]
    assert shared == [{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14}]
    assert [(cpu.package, cpu.node) for cpu in found.cpus if cpu.number in (0, 3, 14)] == [
        (0, 0),
        (0, 1),
        (1, 3),
    ]
    assert found.offline == (() if table == ["-p"] and "-C" in sizes else (15,))
    assert found.cache_bytes == {"L1D": 32 << 10, "L2": found.cache_bytes["L2"], "L3": 24 << 20}
    # lscpu rounds to a tenth where it uses units.
    assert found.cache_bytes["L2"] == pytest.approx(1280 << 10, rel=0.05)
    assert [notice.code for notice in found.notices] == ["dies-unknown"]


def test_a_table_alone(root: Path) -> None:
    found = description_of(lscpu(root, "-p").encode(), "file")
    assert found is not None
    assert [notice.code for notice in found.notices] == ["dies-unknown", "no-cache-sizes"]


def test_a_machine_with_dies(tmp_path: Path) -> None:
    """lscpu does not show them, so a plan of its output is not one for the machine itself."""
    machine = read_machine(str(GOLDEN / "machines/dies.xml"))
    root = write(of_machine(machine), tmp_path / "root")
    found = read(lscpu(root) + lscpu(root, "-p") + numactl(machine), tmp_path)
    assert found.machine_id != machine.machine_id
    plan = make_plan(found, registry.get("spark").traits, "auto")
    assert any("does not show dies" in warning for warning in plan.warnings)


NO_NODES = "# CPU,Core,Socket\n0,0,0\n1,1,0\n2,2,1\n3,3,1\n"
NUMACTL = "node 0 cpus: 0 1\nnode 0 size: 8 MB\nnode 1 cpus: 2 3\nnode 1 size: 8 MB\n"
SUMMARY = "NUMA node(s): 2\nNUMA node0 CPU(s): 0,1\nNUMA node1 CPU(s): 2,3\n"


@pytest.mark.parametrize("beside", [NUMACTL, SUMMARY, SUMMARY + NUMACTL])
def test_a_table_without_nodes(beside: str) -> None:
    found = description_of((NO_NODES + beside).encode(), "file")
    assert found is not None
    assert [cpu.node for cpu in found.cpus] == [0, 0, 1, 1]


def test_sizes_before_2_34_are_of_one_cache() -> None:
    found = description_of(
        b"Architecture: x86_64\nL2 cache: 1024K\nL3 cache:   19712K\n"
        b"# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,0,0\n1,1,1,1,,1,1,1,1\n",
        "file",
    )
    assert found is not None
    assert (found.cache_bytes["L2"], found.cache_bytes["L3"]) == (1 << 20, 19712 << 10)


TABLE = "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,0,0\n1,1,0,0,,1,1,1,0\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Architecture: x86_64\nCPU(s): 8\nL3 cache: 32 MiB (2 instances)\n", "lscpu -p"),
        (TABLE + "2,2,0\n", "has not 9 columns"),
        (TABLE + "2,,0,0,,1,1,1,0\n", "CPU 2 has no core"),
        (TABLE + "1,1,0,0,,1,1,1,0\n", "CPU 1 appears twice"),
        (TABLE + "2,y,0,0,,1,1,1,0\n", "CORE 'y' is not a number"),
        (TABLE + "x2,1,0,0,,1,1,1,0\n", "CPU 'x2' is not a number"),
        (TABLE + "9999,9999,0,0,,1,1,1,0\n", "CPU 9999: Linux has at most 8192"),
        ("On-line CPU(s) list: 0-3\n" + TABLE, "0-3, its table 0-1"),
        ("On-line CPU(s) list: 0-x\n" + TABLE, "'0-x' is not a list of CPUs"),
        ("Off-line CPU(s) list: 1\n" + TABLE, "CPU 1 appears twice"),
        ("NUMA node(s): 2\n" + NO_NODES, "NUMA node(s) 2, and its table no column NODE"),
        ("Socket(s): 2\n# CPU,Core\n0,0\n1,1\n", "Socket(s) 2, and its table no column SOCKET"),
        (TABLE + "node 1 cpus: 1\n", "CPU 1 is on node 0 and on node 1"),
        (NO_NODES + "node 0 size: 5 MB\nnode 1 size: 5 MB\n", "other nodes than lscpu"),
        (NO_NODES + "node 0 cpus: 0 1\n", "CPU 2 has no node"),
        (TABLE + "node 0 size: 5 MB\nnode distances:\nnode 0\n 0: 9\n", "a distance of 9"),
        (TABLE + "node 1 size: 5 MB\n", "other nodes than lscpu"),
        (TABLE + "node 0 size: 5 MB\nnode distances:\nnode 0 1\n 0: 10 20\n", "distances"),
        # A core without L1: `-e` leaves out what a CPU lacks.
        ("CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n6 0 0 6 2:0 yes\n", "'2:0' does not say"),
        ("CPU CORE MODELNAME\n0 0 Some CPU\n", "use 'lscpu -p'"),
        ('{"cpus": [{"core": 0}]}', "a row has no CPU"),
        (TABLE + "node 0 size: 999999999999 MB\n", "no machine has so much"),
        ('{"cpus": [{"cpu": 0}', "not lscpu's JSON"),
        ('{"lscpu": ' + "[" * 100_000, "is nested too deeply"),
    ],
)
def test_refused(text: str, says: str) -> None:
    assert says in refusal(text)


def test_words_of_another_language() -> None:
    found = description_of(
        b"CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE MAXMHZ\n"
        b"  0    0      0    0 0:0:0:0          oui 4100,0000\n"
        b"  1    -      -    - -                non -\n",
        "file",
    )
    assert found is not None
    assert ([cpu.number for cpu in found.cpus], found.offline) == ([0], (1,))


PIECES = ("0,0,0,0,,0,0,0,0", "{", "}", '"cpus": [', "# CPU,", "L3", "-", "99999999999", "node ")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_output_is_read_or_refused(data: st.DataObject) -> None:
    """Nothing but a TopologyError, and a description that can be written."""
    seeds = (TABLE + "node 0 size: 5 MB\nL3 cache: 2 MiB\n", '{"cpus": [{"cpu":0,"core":0}]}')
    lines = data.draw(st.sampled_from(seeds)).splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(lines) - 1))
        cut = data.draw(st.integers(0, len(lines[place])))
        new = data.draw(st.sampled_from(PIECES) | st.text(max_size=6))
        lines[place] = lines[place][:cut] + new + lines[place][cut + data.draw(st.integers(0, 3)) :]
    content = "\n".join(lines).encode(errors="replace")
    assert read_or_refused(content)


def test_what_is_too_large() -> None:
    assert "is over 2 MiB" in refusal(TABLE + "# \n" * 700_000)


def test_this_machine(tmp_path: Path) -> None:
    found, real = read(lscpu(Path("/")) + lscpu(Path("/"), "-p"), tmp_path), read_machine()
    assert [core.pus for core in found.cores] == [core.pus for core in real.cores]
    assert [(l3.size_bytes, l3.pus) for l3 in found.l3] == [
        (l3.size_bytes, l3.pus) for l3 in real.l3
    ]
