"""`measure` on a scripted probe: valid arguments, handling of faults, the inference."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

import pytest

import atoll
from atoll.errors import UsageError
from atoll.host.environment import emulated
from atoll.infer.chiplets import infer
from atoll.probing.measure import chosen_cpus, estimate_s, measure_machine
from atoll.schema.base import parse
from atoll.schema.profile import Inference, Kind, Mode, Profile
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.machines import NodeShape, build, milan, plain, restrict
from tests.parts.probing import PROGRAM, Fields, World


def islands_of_eight(a: int, b: int, home: int) -> float:
    return 23.0 if a // 8 == b // 8 else 105.0


def measured(world: World, **asked: object) -> Profile:
    return measure_machine(world.host, world.machine, program=PROGRAM, **asked)  # type: ignore[arg-type]


def test_chiplets_that_the_system_hides_are_found_and_used() -> None:
    hidden = build([[NodeShape((), 32, 64)]])
    world = World(hidden, latency=islands_of_eight)
    profile = measured(world, only=["latency", "bandwidth"])
    assert profile.inference is not None
    assert profile.inference.chiplets == tuple(tuple(range(i, i + 8)) for i in (0, 8, 16, 24))
    assert profile.core_latency_cas_ns is not None and profile.core_bandwidth_gbs is not None
    assert profile.core_bandwidth_gbs.pus == profile.core_latency_cas_ns.pus
    assert profile.machine_id == hidden.machine_id
    assert profile.mode is Mode.QUICK and profile.clock == "tsc" and not profile.emulated
    assert [watch.kind for watch in profile.watch] == [Kind.LATENCY, Kind.BANDWIDTH]
    again = parse(Profile, profile.model_dump_json(), where="profile.json")
    assert again == profile


def test_chiplets_of_an_uncertain_inference_get_no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    for confidence, expected in ((0.9, False), (0.4, True)):

        def doubted(*args: object, sure: float = confidence) -> Inference:
            changed = {"confidence": sure}
            return infer(*args).model_copy(update=changed)  # type: ignore[arg-type]  # any matrices

        monkeypatch.setattr("atoll.probing.measure.infer", doubted)
        world = World(build([[NodeShape((), 16, 64)]]), latency=islands_of_eight)
        profile = measured(world, only=["latency", "sharing"])
        assert profile.inference is not None and len(profile.inference.chiplets) == 2
        assert ("few-chiplets" in [notice.code for notice in profile.left_out]) is expected


def test_all_kinds_of_a_small_machine_end_in_time() -> None:
    world = World(plain(2), slowness=1.5)
    profile = measured(world)
    assert profile.seconds <= 27
    assert {watch.kind for watch in profile.watch} == set(Kind)
    assert profile.core_latency_cas_ns and profile.core_latency_store_ns
    assert all(probe.closed for probe in world.probes)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("slowness", [1.0, 30.0])
def test_the_time_holds_on_a_large_and_slow_machine(mode: Mode, slowness: float) -> None:
    world = World(milan(2, 4, 2), slowness=slowness, latency=islands_of_eight)
    profile = measured(world, mode=mode)
    assert profile.seconds <= {Mode.QUICK: 28, Mode.FULL: 295}[mode]


@pytest.mark.parametrize("fate", ["die", "hang"])
@pytest.mark.parametrize("do", ["ping", "pipe", "chase", "move", "load", "vector", "churn"])
def test_a_kernel_that_fails_leaves_the_others_alone(do: str, fate: str) -> None:
    world = World(plain(2), script=lambda request: fate if request["do"] == do else {})
    profile = measured(world)
    assert profile.left_out and profile.seconds <= 28
    assert all("\n" not in notice.message for notice in profile.left_out)
    assert {watch.kind for watch in profile.watch} == set(Kind)
    assert (profile.core_latency_cas_ns is None) == (do == "ping")
    assert all(probe.closed for probe in world.probes)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("hello", [{}, "hang"])
def test_a_machine_that_hangs_once_it_has_begun_ends_in_time(mode: Mode, hello: Fields) -> None:
    def script(request: Fields) -> Fields | str:
        if request["do"] == "hello":
            return hello if len(world.probes) > 1 else {}
        return "hang"

    world = World(plain(2), script=script)
    profile = measured(world, mode=mode)
    assert profile.seconds <= {Mode.QUICK: 30, Mode.FULL: 300}[mode]
    assert {watch.kind for watch in profile.watch} == set(Kind)
    assert profile.core_latency_cas_ns is None and not profile.stream
    assert all(probe.closed for probe in world.probes)


def test_one_cpu_gives_a_smaller_honest_answer() -> None:
    profile = measured(World(plain(1)))
    assert profile.core_latency_cas_ns is None and profile.core_bandwidth_gbs is None
    assert profile.inference is None
    assert {"one-cpu"} <= {notice.code for notice in profile.left_out}
    assert profile.caches


def test_an_emulated_machine_is_said_to_be_one_and_concludes_nothing() -> None:
    tcg = {"hypervisor": "TCGTCGTCGTCG"}
    world = World(plain(4), script=lambda request: tcg if request["do"] == "hello" else {})
    profile = measured(world)
    assert profile.emulated and profile.inference is None
    assert "emulated" in {notice.code for notice in profile.notices}
    assert all(request.get("samples", 0) <= 8 for request in world.requests)


def test_disturbances_are_told() -> None:
    def script(request: Fields) -> Fields:
        if request["do"] == "ping":
            world.host.files["/proc/stat"] = "cpu  400 0 100 800 0 0 0 100 0 0\n"
            return {"threads": [{"tid": 1, "cpu": 0, "seen": [1, 1], "involuntary": 0}]}
        return {}

    world = World(plain(2), script=script)
    told = [notice.message for notice in measured(world, only=["latency"]).notices]
    assert "latency: the hypervisor took 25 % of the CPU time" in told
    assert "latency: other processes took 75 % of the CPU time" in told
    assert any("a thread ran on the wrong CPU" in message for message in told)


def test_ctrl_c_leaves_no_probe() -> None:
    def interrupted(kind: Kind, share: float, words: str) -> None:
        if words:
            raise KeyboardInterrupt

    world = World(plain(2))
    with pytest.raises(KeyboardInterrupt):
        measured(world, progress=interrupted)
    assert all(probe.closed for probe in world.probes)


# -- what may be asked -----------------------------------------------------------------------------


def test_cpus_that_may_be_measured() -> None:
    machine = restrict(plain(8), pus=(0, 1, 2, 3))
    host = FakeHost(affinity=frozenset(range(1, 8)))
    assert chosen_cpus(machine, host, None) == (1, 2, 3)
    assert chosen_cpus(machine, host, "2-3") == chosen_cpus(machine, host, [3, 2]) == (2, 3)


@pytest.mark.parametrize(
    ("cpus", "fields"),
    [
        ("0-2", {"outside": 0, "allowed": "1-3"}),
        ([3, 5, 4], {"outside": "4-5", "allowed": "1-3"}),
        ("3,99", {"absent": 99, "all": "0-7"}),
        ("", {}),
        ([], {}),
        ("1-", {"text": "'1-'"}),
        ("3-1", {"text": "'3-1'"}),
    ],
)
def test_cpus_that_may_not(cpus: str | Iterable[int], fields: dict[str, object]) -> None:
    machine = restrict(plain(8), pus=(0, 1, 2, 3))
    with fails(UsageError, **fields):
        chosen_cpus(machine, FakeHost(affinity=frozenset(range(1, 8))), cpus)


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        ({"only": ["latency", "speed"]}, {"name": "speed"}),
        ({"only": []}, {}),
        ({"mode": "slow"}, {"mode": "'slow'"}),
    ],
)
def test_what_is_not_known_is_refused_before_anything_starts(
    asked: dict[str, object], fields: dict[str, object]
) -> None:
    world = World(plain(2))
    with fails(UsageError, **fields):
        measured(world, **asked)
    assert not world.probes


def test_the_estimate() -> None:
    small, large = plain(2), milan(2, 8, 8, smt=2)
    assert estimate_s(machine=small, cpus=small.pus) <= 30
    assert estimate_s(machine=large, cpus=large.pus) <= 30
    assert estimate_s(machine=small, cpus=small.pus, only="latency") < 2
    assert estimate_s(machine=small, cpus=(0,), only="latency,bandwidth") < 2  # no pair at all
    assert estimate_s(machine=small, cpus=small.pus, mode="full") <= 300
    assert estimate_s(machine=large, cpus=large.pus, mode="full") > 300


# -- emulation -------------------------------------------------------------------------------------

DMI = "/sys/class/dmi/id/sys_vendor"
CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
GUEST = "model name\t: AMD EPYC\nflags\t\t: fpu hypervisor\n"


@pytest.mark.parametrize(
    ("files", "signature", "is_one"),
    [
        ({}, "", False),
        ({}, "TCGTCGTCGTCG", True),
        ({"/proc/cpuinfo": GUEST, DMI: "QEMU\n", CLOCKS: "tsc hpet acpi_pm\n"}, "", True),
        ({"/proc/cpuinfo": GUEST, DMI: "QEMU\n", CLOCKS: "tsc hpet acpi_pm\n"}, "KVMKVMKVM", False),
        ({"/proc/cpuinfo": GUEST, DMI: "QEMU\n", CLOCKS: "kvm-clock tsc\n"}, "", False),
        ({"/proc/cpuinfo": GUEST, DMI: "Amazon EC2\n", CLOCKS: "tsc\n"}, "", False),
        ({"/proc/cpuinfo": "model name\t: QEMU TCG CPU version 2.5+\n"}, "", True),
        ({"/proc/cpuinfo": "flags\t\t: fpu\n", DMI: "QEMU\n", CLOCKS: "tsc\n"}, "", False),
    ],
)
def test_an_emulated_cpu_is_told_from_a_virtual_one(
    files: dict[str, str], signature: str, is_one: bool
) -> None:
    assert emulated(FakeHost(files), signature) is is_one


# -- the package -----------------------------------------------------------------------------------


def test_the_package_measures_and_is_cheap_to_import() -> None:
    assert atoll.measure.__doc__ is not None and "Raises UsageError" in atoll.measure.__doc__
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        atoll.mesure  # noqa: B018
    code = "import sys, atoll; print('pydantic' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
