"""Disturbances of a measurement, and the memory it may use, read from a system in memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.host.cpu_times import cpu_times, process_started_s
from atoll.host.environment import environment
from atoll.host.local import LocalHost
from atoll.probing.errors import ProbeHung
from atoll.probing.memory import free_bytes, node_free_bytes
from atoll.probing.requests import Chase, Sampling
from atoll.probing.watch import drift
from atoll.schema.profile import Kind, Mode
from tests.parts.fake_host import FakeHost
from tests.parts.machines import plain, restrict
from tests.parts.probing import Fields, World

GIB = 1 << 30
CHASE = Chase(cpu=0, node=0, bytes=4096, huge=True, budget_s=0.05)
SAMPLING = Sampling(settle=0.02, samples=9)


# -- the watch ---------------------------------------------------------------------------------


def test_the_watch_tells_steal_others_drift_and_misplacement() -> None:
    speeds = iter([[0.3] * 5, [0.36] * 5])

    def script(request: Fields) -> Fields:
        if request["do"] == "spin":
            return {"op_ns": [next(speeds), [0.3]]}
        if request["do"] == "chase":
            thread = {"tid": 1, "cpu": 0, "seen": [0, 1], "involuntary": 3}
            return {"threads": [thread], "pages": {"0": 10, "1": 6, "-2": 1}}
        return {}

    stat = (
        "1 (x) R 1 1 1 0 -1 0 0 0 0 0 {} 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0\n"
    )
    files = {"/proc/self/stat": stat.format(10), "/proc/5000/stat": stat.format(0)}
    world = World(plain(2), script=script, files=files)
    with world.run([Kind.CACHE]) as run, run.measuring(Kind.CACHE):
        run.ask(CHASE)
        world.host.files["/proc/stat"] = "cpu  200 0 100 850 0 0 0 50 0 0\n"
        world.host.files["/proc/self/stat"] = stat.format(20)
        world.host.files["/proc/5000/stat"] = stat.format(50)
        world.host.now_s += 2
    watch = run.watches[0]
    assert watch.kind is Kind.CACHE and watch.seconds == pytest.approx(2.06, abs=0.1)
    assert watch.steal_share == pytest.approx(50 / 200)
    assert watch.others_share == pytest.approx(40 / 200)
    assert watch.frequency_drift == pytest.approx(0.06 / 0.33)
    assert (watch.involuntary_switches, watch.misplaced_threads) == (3, 1)
    assert watch.misplaced_pages == 6


def test_a_core_that_others_use_has_not_changed_its_frequency() -> None:
    speeds = iter([[0.3] * 5, [0.9, 0.9, 0.3, 0.9, 2.0]])  # preempted in all samples but one

    def script(request: Fields) -> Fields:
        return {"op_ns": [next(speeds)]} if request["do"] == "spin" else {}

    with World(plain(1), script=script).run([Kind.CACHE]) as run, run.measuring(Kind.CACHE):
        pass
    assert run.watches[0].frequency_drift == 0


def test_a_stranger_on_a_measured_cpu_is_not_lost_among_idle_ones() -> None:
    world = World(plain(64), affinity=(2, 3))
    world.host.files["/proc/stat"] = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 0 0 0 0 0 0 0\n"
    with world.run([Kind.CACHE]) as run, run.measuring(Kind.CACHE):
        world.host.files["/proc/stat"] = (
            "cpu  100 0 0 6300 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\n"
            "cpu2 90 0 0 0 0 0 0 10 0 0\ncpu3 0 0 0 100 0 0 0 0 0 0\n"
        )
    assert run.watches[0].others_share == pytest.approx(90 / 200)
    assert run.watches[0].steal_share == pytest.approx(10 / 200)


def test_a_few_ticks_tell_no_share() -> None:
    world = World(plain(2))
    with world.run([Kind.CACHE]) as run, run.measuring(Kind.CACHE):
        world.host.files["/proc/stat"] = "cpu  109 0 100 810 0 0 0 0 0 0\n"
    assert run.watches[0].others_share is run.watches[0].steal_share is None


def test_a_probe_of_ours_that_has_ended_is_no_stranger() -> None:
    stat = (
        "1 (x) R 1 1 1 0 -1 0 0 0 0 0 {} 0 {} 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0\n"
    )
    files = {"/proc/self/stat": stat.format(0, 0), "/proc/5000/stat": stat.format(7, 0)}
    world = World(plain(2), files=files)
    with world.run([Kind.CHURN]) as run, run.measuring(Kind.CHURN):
        del world.host.files["/proc/5000/stat"]
        world.host.files["/proc/self/stat"] = stat.format(10, 97)
        world.host.files["/proc/stat"] = "cpu  200 0 100 800 0 0 0 0 0 0\n"
    assert run.watches[0].others_share == 0


def test_a_system_that_tells_nothing_has_unknown_shares() -> None:
    world = World(plain(2), script=lambda request: "die" if request["do"] == "spin" else {})
    del world.host.files["/proc/stat"]
    with world.run([Kind.CACHE]) as run, run.measuring(Kind.CACHE):
        run.ask(CHASE)
    watch = run.watches[0]
    assert watch.steal_share is watch.others_share is watch.frequency_drift is None
    assert drift({0: 1.0}, {1: 1.0}) is None


# -- memory ------------------------------------------------------------------------------------


def test_memory_is_what_is_available_to_us_less_a_quarter() -> None:
    machine = plain(2, memory_gib=16)
    world = World(machine)
    assert free_bytes(world.host, machine) == 12 * GIB
    world.host.files["/proc/meminfo"] = f"MemAvailable: {8 * GIB // 1024} kB\n"
    assert free_bytes(world.host, machine) == 6 * GIB
    world.host.files |= {
        "/proc/self/cgroup": "0::/a/b\n",
        "/sys/fs/cgroup/a/b/memory.max": "max\n",
        "/sys/fs/cgroup/a/b/memory.current": f"{GIB}\n",
        "/sys/fs/cgroup/a/memory.max": f"{5 * GIB}\n",
        "/sys/fs/cgroup/a/memory.current": f"{GIB}\n",
    }
    assert free_bytes(world.host, machine) == 3 * GIB
    world.host.files["/sys/fs/cgroup/a/memory.current"] = f"{5 * GIB}\n"  # nearly all page cache
    assert free_bytes(world.host, machine) == 0
    world.host.files["/sys/fs/cgroup/a/memory.stat"] = f"anon 4096\ninactive_file {4 * GIB}\n"
    assert free_bytes(world.host, machine) == 3 * GIB
    assert free_bytes(World(machine).host, restrict(machine, memory_max_bytes=GIB)) == 0.75 * GIB


@given(text=st.text() | st.text("cpu 0123456789-x\n"))
def test_whatever_the_system_tells_nothing_breaks(text: str) -> None:
    names = ("/proc/stat", "/proc/self/cgroup", "/proc/meminfo", "/proc/cpuinfo", "/proc/uptime",
             "/proc/self/stat", "/sys/fs/cgroup/memory.stat")  # fmt: skip
    files = {
        **dict.fromkeys(names, text),
        "/sys/fs/cgroup/memory.max": "9000",
        "/sys/fs/cgroup/memory.current": "5000",
    }
    host, machine = FakeHost(files), plain(1)
    assert 0 <= free_bytes(host, machine) <= 9000
    assert node_free_bytes(host, 0) >= 0
    assert min(*cpu_times(host), *cpu_times(host, [0])) >= 0
    assert process_started_s(host) <= host.monotonic()
    assert environment(host, machine).memory_bytes == machine.memory_bytes


def test_memory_of_a_node() -> None:
    world = World(plain(2))
    assert node_free_bytes(world.host, 0) == 48 * GIB
    assert node_free_bytes(world.host, 1) == 0
    world.host.files["/sys/devices/system/node/node1/meminfo"] = (
        "Node 1 MemTotal:       4194304 kB\nNode 1 MemFree:        1048576 kB\n"
        "Node 1 Inactive(file):  1048576 kB\n"
    )
    assert node_free_bytes(world.host, 1) == 1.5 * GIB


def test_touching_much_memory_is_not_hanging() -> None:
    world = World(plain(2), script=lambda request: "hang" if request["do"] == "chase" else {})
    with world.run(mode=Mode.FULL) as run, run.measuring(Kind.CACHE):
        for size, patience_s in ((4096, 2.25), (1 << 30, 2.25 + (1 << 30) / 100e6)):
            begin_s = world.host.monotonic()
            with pytest.raises(ProbeHung):
                run.ask(Chase(cpu=0, node=0, bytes=size, huge=True, budget_s=0.05))
            assert world.host.monotonic() - begin_s == pytest.approx(patience_s, abs=0.01)


def test_a_process_knows_when_it_began() -> None:
    fields = " ".join(["0"] * 18 + ["250"] + ["0"] * 30)  # from field 4; 22 is the start
    host = FakeHost({"/proc/self/stat": f"1 (x) R {fields}\n", "/proc/uptime": "10.5 9\n"})
    host.now_s = 100.0
    assert process_started_s(host) == pytest.approx(100 - 10.5 + 250 / os.sysconf("SC_CLK_TCK"))
    assert process_started_s(FakeHost()) == 0.0
    real = LocalHost()
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    since_boot_s = ticks / os.sysconf("SC_CLK_TCK")
    now_s, up_s = real.monotonic(), float(Path("/proc/uptime").read_text().split()[0])
    assert now_s - process_started_s(real) == pytest.approx(up_s - since_boot_s, abs=5)
