"""How a situation is read: knobs, rights, containers, neighbours, a command's own state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from atoll.advice import reading
from atoll.advice.allocators import allocators
from atoll.advice.neighbours import neighbours
from atoll.advice.reading import (
    read_command,
    read_engine,
    read_limits,
    read_process,
    read_situation,
)
from atoll.advice.rule import decide
from atoll.advice.situation import DEFAULT_POLICY
from atoll.advice.system_rules import TUNERS
from atoll.errors import UsageError
from atoll.host.processes import Finished
from atoll.host.programs import ProgramFiles
from atoll.host.topology import read_machine
from atoll.inspect.preload import Program
from atoll.plan import make_plan
from atoll.schema.advice import Workload
from atoll.schema.plan import Placement
from tests.parts import advice as parts
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.knobs import FILES, Kernel
from tests.parts.paths import GOLDEN
from tests.parts.plan import DISTRIBUTED

DRY = "cpus     0-1\nmemory   {}\nthp      {}\nenv      {}\ncommand  {}\n"


def launcher(
    memory: str = "default (first touch)",
    thp: str = "as the system has it",
    env: str = "unchanged",
    command: str = "/bin/prog --size 3",
) -> FakeHost:
    def on_run(argv: Sequence[str]) -> Finished:
        assert "--dry-run" in argv
        return Finished(0, DRY.format(memory, thp, env, command), "")

    return FakeHost(on_run=on_run, variables={"OMP_PROC_BIND": "close"})


def stat(pid: int, comm: str) -> str:
    return f"{pid} ({comm}) S 1 " + " ".join(["0"] * 48)


def test_a_command_inherits_its_state() -> None:
    found = read_command(launcher(), ["prog", "--size", "3"], {})
    assert (sorted(found.cpus), found.policy, found.malloc) == ([0, 1], DEFAULT_POLICY, "system")
    assert found.may_have_thp and found.threads is Placement.DENSE


@pytest.mark.parametrize(
    ("memory", "policy"),
    [
        ("interleave: 0-1", "interleave:0-1"),
        ("weighted-interleave: 0,2", "weighted interleave:0,2"),
        ("preferred: 1", "prefer:1"),
        ("local", "local"),
        ("unknown (get_mempolicy: Operation not permitted)", DEFAULT_POLICY),
    ],
)
def test_a_command_has_the_policy_of_its_launcher(memory: str, policy: str) -> None:
    host = launcher(memory, "disabled", "LD_PRELOAD=/usr/lib/libtbbmalloc_proxy.so.2:/x.so")
    found = read_command(host, ["atoll-exec", "-i", "0-1", "--", "prog"], {})
    assert (found.policy, found.malloc, found.may_have_thp) == (policy, "tbbmalloc", False)


@pytest.mark.parametrize(
    ("started", "command", "name"),
    [
        ("/bin/prog a b", ["prog", "a b"], "prog 'a b'"),
        ("/my tools/prog -c x", ["/my tools/prog", "-c", "x"], "'/my tools/prog' -c x"),
        ("/bin/prog x\ncpus = 3\nmemory\n", ["prog", "x\ncpus = 3\nmemory\n"], "prog 'x cpus ="),
        ("/my tools/prog 0", ["atoll-exec", "-C", "0", "prog", "0"], "atoll-exec -C 0 prog 0"),
        ("/bin/prog", ["prog"], "prog"),
    ],
)
def test_a_program_is_told_from_its_arguments(
    started: str, command: list[str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def look(host: object, files: ProgramFiles, *, library: str) -> Program:
        looked.append(files.program)
        return Program(parts.EFFECTIVE)

    monkeypatch.setattr(reading, "look_at_program", look)
    found = read_command(launcher(command=started), command, {})
    assert looked == [started.partition("/prog")[0] + "/prog"]
    assert sorted(found.cpus) == [0, 1] and found.name.startswith(name)


def test_options_that_start_nothing_are_told() -> None:
    host = FakeHost(on_run=lambda argv: Finished(0, "atoll-exec 1.0\n", ""))
    with fails(UsageError, program="atoll-exec --version"):
        read_command(host, ["atoll-exec", "--version"], {})


def test_a_command_that_cannot_start_is_one_line() -> None:
    host = FakeHost(on_run=lambda argv: Finished(127, "", "atoll-exec: prog: not found\n"))
    with fails(UsageError, program="prog"):
        read_command(host, ["prog"], {})


def test_a_situation_has_the_knobs_that_are_there() -> None:
    found = read_situation(
        Kernel(FILES | {"/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n"}),
        parts.TWO,
        parts.subject(parts.TWO),
        Workload.UNKNOWN,
        mallocs={"jemalloc": "/lib/libjemalloc.so.2"},
        limits=read_limits(Kernel(), parts.TWO),
    )
    assert found.knobs["numa-balancing"] == "1" and found.knobs["thp-enabled"] == "madvise"
    assert found.frequency_driver == "acpi-cpufreq" and found.mallocs == ("jemalloc",)
    assert not found.root


def test_limits_of_a_container() -> None:
    host = FakeHost(
        {
            "/proc/self/mounts": "proc /proc/sys proc ro,nosuid 0 0\n",
            "/proc/self/cgroup": "0::/kubepods/pod1\n",
        },
        on_run=lambda argv: Finished(125, "", "atoll-exec: -i: Operation not permitted\n"),
    )
    limits = read_limits(host, parts.TWO)
    assert "Operation not permitted" in limits.policy and "/proc/sys" in limits.knobs
    assert "not root" in limits.other[0] and "kubepods" in limits.other[1]
    assert read_limits(FakeHost(user_id=0), parts.ONE).lines == ()


def test_neighbours_are_running_daemons_and_boot_parameters() -> None:
    host = FakeHost(
        {
            "/proc/7/stat": stat(7, "numad"),
            "/proc/8/stat": stat(8, "tuned"),
            "/proc/9/stat": stat(9, "bash"),
            "/etc/tuned/active_profile": "throughput-performance\n",
            "/proc/12/cgroup": "0::/system.slice/reef@1.service\n",
            "/proc/cmdline": "quiet transparent_hugepage=never isolcpus=2-3 numa_balancing\n",
        }
    )
    assert [one.name for one in neighbours(host, 12)] == [
        "numad",
        "tuned (throughput-performance)",
        "systemd (reef@1.service)",
        "boot: transparent_hugepage=never",
        "boot: isolcpus=2-3",
    ]
    assert neighbours(FakeHost()) == ()


def test_allocators_that_cannot_be_had_are_named() -> None:
    states = {one.name: one.state for one in allocators({"mimalloc": "/lib/libmimalloc.so.2"})}
    assert states["mimalloc"] == "loadable" and states["jemalloc"] == "not installed"
    assert states["Hoard"] == states["supermalloc"] == states["mcmalloc"] == "not available"


@pytest.mark.parametrize("path", sorted((GOLDEN / "machines").glob("*.xml")), ids=lambda p: p.stem)
def test_the_planner_and_the_advice_agree(path: Path) -> None:
    """What `atoll plan` chooses for a distributed engine's memory, the advice leaves alone."""
    machine = read_machine(str(path))
    plan = make_plan(machine, DISTRIBUTED, "auto")
    subject = read_engine(FakeHost(), plan, DISTRIBUTED, None, {}, machine)
    situation = parts.situation(machine, subject)
    memory = next(line for line in decide(TUNERS, situation) if line.tuner == "memory")
    assert memory.leaves, (plan.policy, memory)


def test_a_kernel_thread_is_refused() -> None:
    host = FakeHost({"/proc/2/status": "Name:\tkthreadd\nTgid:\t2\n", "/proc/2/maps": ""})
    with fails(UsageError, pid="2"):
        read_process(host, 2)
