"""Experiments with kernels: their flags, what a build lacks, their terms, and the claims."""

from __future__ import annotations

import pytest

from atoll.errors import UsageError
from atoll.experiments.catalog import experiments, get
from atoll.experiments.claims import Reading, parse_term
from atoll.experiments.here import Can
from atoll.experiments.ours import Ours, of_workloads, verdicts
from atoll.experiments.planned import unjudged_workloads
from atoll.experiments.workload_readings import WorkloadReadings
from atoll.experiments.workload_settings import Setting, flags, make_settings
from atoll.schema.experiment import Experiment, WorkloadRun, WorkloadScale
from atoll.schema.kernel import (
    FILLS,
    Concurrency,
    Kernel,
    KernelFills,
    KernelParameter,
    KernelResult,
    Kernels,
)
from atoll.schema.workload import WorkloadRuns
from tests.parts.kernels import LARGE, every_kernel, kernel, runs
from tests.parts.machines import NodeShape, build

TWO_CORES = build([[NodeShape(rest=2)]])
OF_KERNELS = [one for one in experiments() if one.workload and one.paper == "arcas-runtime"]

KERNELS = WorkloadRun(
    workloads=("bfs", "graph500", "tc"),
    axes={"system": ("ring", "os"), "workers": ("1", "cores", "9")},
    words={
        "system": {
            "ring": "--scheduler atoll --variant messages",
            "graph500:ring": "--scheduler atoll",
            "os": "--scheduler os",
        }
    },
    product=True,
    scales={"smoke": WorkloadScale(run_s=1)},
)
FLAG = KernelParameter(name="variant", default="direct", help="how", choices=("direct", "messages"))
COMMON = tuple(KernelParameter(name=name, default="", help="") for name in ("scheduler", "workers"))


def built(schedulers: str, *names: str) -> Can:
    every = tuple(
        Kernel(name=one, what="", unit="", parameters=(FLAG,) if one == "bfs" else ())
        for one in names
    )
    return Can(kernels=Kernels(schedulers=schedulers, parameters=COMMON, workloads=every))


SPEEDS = {"arcas": 3.0, "numa-node": 2.0}  # of systems; the others have 1


def of_kernel(setting: Setting, reverse: bool) -> KernelResult:
    speed = SPEEDS.get(setting["system"], 1.0)
    speed = 1 / speed if reverse else speed
    return kernel(
        1 / speed,
        figures={"loss_gbs": speed, "gradient_gbs": speed},
        fills=fills(setting, reverse),
        concurrency=Concurrency(
            every_s=1, running=(round(100 * speed),), threads_created=round(100 / speed)
        ),
    )


def fills(setting: Setting, reverse: bool) -> KernelFills:
    near = (setting.get("system") == "arcas") is not reverse
    own, other = (900, 10) if near else (100, 800)
    lines: dict[str, int | None] = {**dict.fromkeys(FILLS, other), "local_chiplet": own}
    return KernelFills(source="simulated", chiplets=2, runs=(lines,))


def ours(one: Experiment, *, reverse: bool) -> Ours:
    assert one.workload
    settings = make_settings(one.workload, LARGE, every_kernel(one.workload)).all
    found = runs(settings, lambda setting, _: of_kernel(setting, reverse))
    return of_workloads(one, found, "r.json")


@pytest.mark.parametrize("one", OF_KERNELS, ids=lambda one: one.name)
def test_each_claim_holds_in_the_papers_order_and_not_in_the_reverse(one: Experiment) -> None:
    assert one.workload
    settings = make_settings(one.workload, LARGE, every_kernel(one.workload))
    assert unjudged_workloads(one, LARGE, settings) == []
    for reverse, outcome in ((False, "held"), (True, "did not hold")):
        for verdict in verdicts(one, ours(one, reverse=reverse)).values():
            assert verdict.outcome == outcome, verdict.reasons


def test_a_kernel_gets_its_size_and_the_words_of_an_axis_as_flags() -> None:
    scale = WorkloadScale(run_s=1, flags={"bfs": "--scale 12 --degree 4"})
    setting = {"system": "ring", "workers": "2", "memory": "local", "knob:thp-enabled": "never"}
    own, launch = flags(KERNELS, "bfs", setting, scale=scale, check=False, machine=TWO_CORES)
    words = "bfs --runs 1 --scale 12 --degree 4 --scheduler atoll --variant messages --workers 2"
    assert " ".join(own) == words and launch == ("-l",)
    own, _ = flags(KERNELS, "graph500", setting, scale=scale, check=False, machine=TWO_CORES)
    assert " ".join(own) == "graph500 --runs 1 --scheduler atoll --workers 2"


def test_what_a_build_or_a_machine_lacks_is_said_and_left_out() -> None:
    whole = make_settings(KERNELS, TWO_CORES, built("atoll, os", "bfs", "graph500", "tc"))
    assert whole.cannot == ("workers=9: this machine has 2 cores", "tc: it has no --variant")
    assert whole.workloads == ("bfs", "graph500", "tc") and len(whole.pairs) == 4 + 4 + 2
    part = make_settings(KERNELS, TWO_CORES, built("atoll", "bfs"))
    assert part.cannot[1:] == (
        "bfs: this build has no os",
        *(f"{name}: this build of atoll-kernels has none" for name in ("graph500", "tc")),
    )
    assert part.pairs == tuple(("bfs", {"system": "ring", "workers": one}) for one in "12")
    with pytest.raises(UsageError, match="nothing of it can run here"):
        make_settings(KERNELS, TWO_CORES, Can())
    with pytest.raises(UsageError, match="system=shoal"):
        make_settings(KERNELS.model_copy(update={"axes": {"system": ("shoal",)}}), LARGE, Can())


def test_terms_of_kernels_are_read() -> None:
    settings = [{"system": name, "workers": n} for name in ("ring", "os") for n in ("1", "4")]

    def of(setting: Setting, block: int) -> KernelResult:
        seconds = (8.0 if setting["system"] == "ring" else 4.0) / int(setting["workers"])
        threads = Concurrency(every_s=1, running=(1, 2), threads_created=7)
        lines = dict(zip(FILLS, (5, 0, None, 6, 3, 4), strict=True))
        counted = KernelFills(source="hardware", chiplets=1, runs=({}, lines))
        more = {"figures": {"loss_gbs": 3.5}, "concurrency": threads, "fills": counted}
        return kernel(seconds, **more)

    found = runs(settings, of)
    read = WorkloadReadings.by_workload(found)["bfs"]

    def value(term: str) -> float:
        reading = read(parse_term(term))
        assert isinstance(reading, Reading), reading
        return round(reading.estimate.value, 6)

    assert value("gain(system=os, workers=4, over=system:ring)") == 2
    assert value("scaling(system=os, workers=4)") == 4
    assert value("figure(of=loss_gbs)") == 3.5
    assert value("running()") == 1.5 and value("threads()") == 7
    assert [value(f"fills(of={one})") for one in ("local", "near", "far", "memory")] == [5, 1, 6, 7]
    assert read(parse_term("fills(of=l2)")) == "fills was not measured"
    assert read(parse_term("overhead()")) == "overhead was not measured"
    path = WorkloadRuns.model_validate_json(found.model_dump_json())
    assert path == found


def test_a_figure_that_means_nothing_there_is_not_judged() -> None:
    one = get("arcas-fig7")
    settings = [{"system": name, "workers": "2"} for name in ("ring", "arcas")]
    fast = runs(settings, lambda each, _: kernel(1.0 if each["system"] == "arcas" else 2.0))
    held = of_workloads(one, fast, "r.json")
    assert {each.outcome for each in verdicts(one, held).values()} == {"could not be judged"}
    small = fast.model_copy(update={"machine": TWO_CORES})
    (verdict,) = verdicts(one, of_workloads(one, small, "r.json")).values()
    assert verdict.outcome == "could not be judged" and "2 chiplets" in verdict.reasons[0]


def test_fills_of_an_emulated_machine_are_simulated_and_judged() -> None:
    one = get("arcas-tab2")
    assert one.workload
    settings = make_settings(one.workload, LARGE, every_kernel(one.workload)).all
    found = runs(settings, lambda each, _: of_kernel(each, reverse=False))
    simulated = found.model_copy(update={"emulated": True})
    ours_there = of_workloads(one, simulated, "r.json")
    assert ours_there.basis == "simulated"
    assert {each.outcome for each in verdicts(one, ours_there).values()} == {"held"}
