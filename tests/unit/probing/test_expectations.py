"""Measured against expected figures: 'misconfigured?' only for comparable machines."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.probing.expectations import expectations
from atoll.schema.machine import Machine
from atoll.schema.profile import Expectation, Inference, Profile, StreamKernel, StreamRun
from tests.parts import profiles
from tests.parts.machines import NodeShape, build, milan

MILAN = "AMD EPYC 7713 64-Core Processor"
EXPECTED_GBS = 0.75 * 2 * 204.8


def server(**shape: Any) -> Machine:
    return milan(2, 8, 8, **shape).model_copy(update={"cpu_model": MILAN})


def measured(
    machine: Machine,
    triad_gbs: float = 350.0,
    *,
    settled: bool = True,
    level: str = "memory",
    threads: int | None = None,
    virtualization: str = "none",
    cpus: tuple[int, ...] | None = None,
    **parts: Any,
) -> Profile:
    run = StreamRun(
        kernel=StreamKernel.TRIAD, processes=1, per="machine", level=level,
        threads=threads or len(machine.cores), working_set_bytes=1 << 30,
        bandwidth_gbs=profiles.figure(triad_gbs, settled=settled),
    )  # fmt: skip
    made = profiles.profile(machine.cpu_model, len(machine.pus), stream=(run,), **parts)
    environment = made.environment.model_copy(update={"virtualization": virtualization})
    return made.model_copy(
        update={"environment": environment, "cpus": machine.pus if cpus is None else cpus}
    )


def triad_of(found: tuple[Expectation, ...]) -> Expectation:
    return next(one for one in found if "triad" in one.figure)


def inferred(groups: int) -> Inference:
    return Inference(
        chiplets=tuple((2 * n, 2 * n + 1) for n in range(groups)), packages=(), smt=(), levels=(),
        confidence=0.9, source="latency" if groups else "none",
    )  # fmt: skip


def test_a_machine_in_good_order_is_as_expected() -> None:
    found = triad_of(expectations(measured(server()), server()))
    assert found.verdict == "as expected"
    assert found.expected == pytest.approx(EXPECTED_GBS)
    assert found.measured == 350.0 and found.unit == "GB/s"
    assert "409.6 GB/s" in found.source and "AMD" in found.source


def test_more_than_a_tenth_under_is_asked_about() -> None:
    found = triad_of(expectations(measured(server(), 0.89 * EXPECTED_GBS), server()))
    assert found.verdict == "misconfigured?"
    assert "11 %" in found.reason and "memory channel" in found.reason
    near = triad_of(expectations(measured(server(), 0.91 * EXPECTED_GBS), server()))
    assert near.verdict == "as expected"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"settled": False}, "did not settle"),
        ({"emulated": True}, "emulated"),
        ({"threads": 16}, "16 threads on 128 cores"),
        ({"cpus": tuple(range(64))}, "64 of 128 cores were not measured"),
    ],
)
def test_what_is_no_figure_of_the_whole_machine_is_not_compared(
    changes: dict[str, Any], words: str
) -> None:
    found = triad_of(expectations(measured(server(), 100.0, **changes), server()))
    assert found.verdict == "not comparable"
    assert words in found.reason


def test_a_cache_resident_triad_is_no_memory_bandwidth() -> None:
    assert expectations(measured(server(), 7297.0, level="L3"), server()) == ()


def test_a_part_of_a_processor_is_not_compared() -> None:
    part = milan(1, 1, 8).model_copy(update={"cpu_model": MILAN})
    found = triad_of(expectations(measured(part, 40.0, virtualization="Cloud"), part))
    assert found.verdict == "not comparable"
    assert "8 of the processor's 64 cores" in found.reason
    nameless = milan(1, 1, 8).model_copy(update={"cpu_model": "AMD EPYC 7R13 Processor"})
    found = triad_of(expectations(measured(nameless, 40.0, virtualization="Cloud"), nameless))
    assert found.verdict == "not comparable"
    assert "may show only a part" in found.reason


def test_a_make_for_one_cloud_is_compared_in_chiplets_alone() -> None:
    metal = milan(2, 8, 6).model_copy(update={"cpu_model": "AMD EPYC 7R13 Processor"})
    found = expectations(measured(metal, 100.0, inference=inferred(16)), metal)
    assert triad_of(found).verdict == "not comparable"
    assert "made for one cloud" in triad_of(found).reason
    assert [one.verdict for one in found if one.unit == "chiplets"] == ["as expected"]


def test_a_hidden_l3_does_not_make_a_model_small() -> None:
    hidden = server().model_copy(update={"l3": ()})
    assert "shows no L3" in triad_of(expectations(measured(hidden, 100.0), hidden)).reason


def test_offline_cpus_make_it_a_part() -> None:
    machine = server().model_copy(update={"offline_cpus": (128, 129)})
    assert "2 CPUs are offline" in triad_of(expectations(measured(machine, 9.0), machine)).reason


def test_a_small_model_has_fewer_links_to_its_memory() -> None:
    small = milan(1, 2, 8).model_copy(update={"cpu_model": "AMD EPYC 7303 16-Core Processor"})
    found = triad_of(expectations(measured(small, 60.0), small))
    assert found.verdict == "not comparable"
    assert "2 L3 groups per package, where the family has up to 8" in found.reason


def test_a_published_figure_of_the_very_machine_counts_first() -> None:
    cloud = build([[NodeShape((8, 8, 7, 7))] * 2] * 2, cpu_model="AMD EPYC 7V73X 64-Core Processor")
    assert len(cloud.cores) == 120
    for gbs, verdict in ((335.0, "as expected"), (290.0, "misconfigured?")):
        found = triad_of(expectations(measured(cloud, gbs, virtualization="Cloud"), cloud))
        assert (found.model, found.expected, found.verdict) == ("Azure HBv3", 330.0, verdict)
        assert "microsoft" in found.source


def test_an_unknown_model_has_no_expectation() -> None:
    unknown = milan().model_copy(update={"cpu_model": "X"})
    assert expectations(measured(unknown), unknown) == ()


def chiplets_of(machine: Machine, groups: int, **parts: Any) -> Expectation:
    found = expectations(measured(machine, inference=inferred(groups), **parts), machine)
    return next(one for one in found if one.figure.startswith("chiplets"))


def test_chiplets_are_compared_too() -> None:
    assert chiplets_of(server(), 16).verdict == "as expected"
    fewer = chiplets_of(server(), 8)
    assert (fewer.verdict, fewer.expected, fewer.measured) == ("not comparable", 16, 8)
    assert "at most" in fewer.reason
    desk = build([[NodeShape((8,))]], cpu_model="AMD Ryzen 9 7950X 16-Core Processor")
    assert "8 of the processor's 16 cores" in chiplets_of(desk, 0).reason
    desk = build([[NodeShape((8, 8))]], cpu_model="AMD Ryzen 9 7950X 16-Core Processor")
    assert chiplets_of(desk, 2).verdict == "as expected"
    assert chiplets_of(desk, 0).verdict == "misconfigured?"


def test_tiles_that_did_not_show_are_named_with_the_remedy() -> None:
    tiles = build([[NodeShape((), 56)]], cpu_model="Intel(R) Xeon(R) Platinum 8480+")
    found = chiplets_of(tiles, 0)
    assert found.verdict == "not comparable"
    assert "4 tiles share one L3" in found.reason and "--chiplets" in found.reason
    assert chiplets_of(tiles, 4).verdict == "as expected"


@given(
    st.floats(0.1, 1e4), st.booleans(), st.booleans(), st.sampled_from(["none", "Cloud", ""]),
    st.integers(0, 20),
)  # fmt: skip
def test_only_what_can_be_compared_is_called_misconfigured(
    gbs: float, settled: bool, emulated: bool, virtualization: str, groups: int
) -> None:
    profile = measured(
        server(), gbs, settled=settled, emulated=emulated, virtualization=virtualization,
        inference=inferred(groups),
    )  # fmt: skip
    for one in expectations(profile, server()):
        assert one.reason and one.source
        if one.verdict == "misconfigured?":
            assert settled and not emulated and one.measured < 0.9 * one.expected
