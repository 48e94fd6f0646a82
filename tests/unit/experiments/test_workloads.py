"""Experiments with workloads: what a machine can, what is started, what the runs say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from atoll.bench import switches
from atoll.errors import CheckFailed, UsageError
from atoll.experiments import workload_run
from atoll.experiments.catalog import experiments, get
from atoll.experiments.claims import Reading, parse_term
from atoll.experiments.here import Can
from atoll.experiments.ours import Ours, of_workloads, verdicts
from atoll.experiments.outlook import outlook
from atoll.experiments.planned import unjudged_workloads
from atoll.experiments.workload_readings import WorkloadReadings
from atoll.experiments.workload_run import Length, measure_workloads, resumable
from atoll.experiments.workload_settings import Setting, flags, knobs, make_settings, runs_of
from atoll.host.api import Host
from atoll.knobs.journal import JournalFolder
from atoll.schema.experiment import Experiment, WorkloadRun, WorkloadScale
from atoll.schema.plan import EngineTraits
from atoll.schema.workload import WorkloadAnswer, WorkloadResult, WorkloadRuns
from atoll.store.document import read_document
from tests.parts.fake_host import FakeHost
from tests.parts.kernels import LARGE, runs
from tests.parts.machines import NodeShape, build, restrict

TWO_CORES = build([[NodeShape(rest=2)]])
ALL = Can(("jemalloc", "tcmalloc", "tbbmalloc"))
OF_WORKLOADS = [one for one in experiments() if one.workload and one.paper == "numa-query-tuning"]
SCALE = WorkloadScale(part=0.001, run_s=1)
TINY = WorkloadScale(part=1e-6, run_s=1)  # 100 records of w1
HALF = WorkloadScale(part=0.5, run_s=1)


def run(axes: Mapping[str, tuple[str, ...]], *, product: bool = False) -> WorkloadRun:
    return WorkloadRun(
        workloads=("w1", "w3"),
        axes=dict(axes),
        product=product,
        scales={"smoke": SCALE},
    )


def result(seconds: float = 1, **more: object) -> WorkloadResult:
    fields = {
        "workload": "w1",
        "scheduler": "plain",
        "variant": "paper",
        "dataset": "runs",
        "records": 100,
        "groups": 1,
        "seed": 1,
        "threads": 2,
        "keep": False,
        "generate_s": 0,
        "runs_s": (seconds,),
        "records_per_s": 1,
        "input_bytes": 1,
        "peak_bytes": 1,
        "migrations": 0,
        "checked": False,
        "answer": WorkloadAnswer(rows=1, sums=(1,)),
    }
    return WorkloadResult.model_validate(fields | more)


def test_the_baseline_comes_first_then_one_axis_at_a_time_or_all() -> None:
    axes = {"malloc": ("system", "tbbmalloc"), "threads": ("nodes", "all")}
    single = make_settings(run(axes), LARGE, ALL)
    assert single.all == (
        {"malloc": "system", "threads": "4"},
        {"malloc": "tbbmalloc", "threads": "4"},
        {"malloc": "system", "threads": "all"},
    )
    every = make_settings(run(axes, product=True), LARGE, ALL)
    assert len(every.all) == 4 and every.all[0] == single.all[0]
    assert runs_of(SCALE, single) == 5 * 2 * 3


def test_what_a_small_machine_cannot_is_said_and_left_out() -> None:
    axes = {
        "malloc": ("system", "jemalloc"),
        "memory": ("first-touch", "interleave"),
        "placement": ("none", "sparse", "dense"),
        "knob:numa-balancing": ("1", "0"),
        "knob:thp-enabled": ("always", "never"),
    }
    found = make_settings(run(axes, product=True), TWO_CORES, Can((), "only root"))
    assert found.all == tuple(
        {"malloc": "system", "memory": "first-touch", "placement": value}
        for value in ("none", "sparse")
    )
    assert [one.partition(": ")[0] for one in found.cannot] == [
        "malloc=jemalloc",
        "memory=interleave",
        "placement=dense",
        *("knob:numa-balancing=1", "knob:numa-balancing=0"),
        *("knob:thp-enabled=always", "knob:thp-enabled=never"),
    ]


@pytest.mark.parametrize(
    ("axis", "value"),
    [("malloc", "hoard"), ("threads", "0"), ("threads", "two"), ("bogus", "1"), ("memory", "bind")],
)
def test_an_unknown_axis_or_value_is_refused(axis: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"{axis}={value}"):
        make_settings(run({axis: (value,)}), LARGE, ALL)


def test_a_setting_becomes_flags() -> None:
    setting = {
        "threads": "4",
        "dataset": "zipf",
        "placement": "dense",
        "memory": "interleave",
        "malloc": "tbbmalloc",
        "knob:thp-enabled": "never",
    }
    chosen = run({"malloc": ("system",)})
    own, launch = flags(chosen, "w1", setting, scale=HALF, check=True, machine=LARGE)
    words = "w1 --runs 1 --records 50000000 --threads 4 --dataset zipf --pin 0,1,2,3"
    assert " ".join(own) == words
    assert launch == ("-i", "all", "--malloc", "tbbmalloc")
    assert knobs(setting) == {"thp-enabled": "never"}
    kept = chosen.model_copy(update={"keep": True})
    own, launch = flags(kept, "w3", {}, scale=HALF, check=False, machine=LARGE)
    assert own == ["w3", "--runs", "1", "--records", "128000000", "--keep", "--no-check"]
    assert launch == ()
    own, _ = flags(kept, "w4", {"index": "btree"}, scale=HALF, check=False, machine=LARGE)
    assert own[-3:] == ["--index", "btree", "--no-check"]


def test_terms_are_read_block_by_block() -> None:
    settings = [{"malloc": one, "placement": "none"} for one in ("system", "jemalloc")]

    def of(setting: Setting, block: int) -> WorkloadResult:
        slow = 1 + block
        if setting["malloc"] == "system":
            return result(3.0 * slow, overhead=2.5, migrations=40, local_share_estimated=0.25)
        return result(2.0 * slow)

    read = WorkloadReadings.by_workload(runs(settings, of))["w1"]

    def value(term: str) -> float:
        found = read(parse_term(term))
        assert isinstance(found, Reading), found
        return round(found.estimate.value, 6)

    assert value("speedup(malloc=jemalloc)") == value("best(over=malloc)") == 1.5
    assert value("remaining(malloc=jemalloc)") == 66.666667
    time = read(parse_term("time(malloc=jemalloc)"))
    assert isinstance(time, Reading) and time.mean == 7  # of 2, 4, ..., 12
    assert value("overhead()") == 2.5 and value("local()") == 25
    assert value("moves()") == 40 and value("moves(malloc=jemalloc)") == 1
    # A knob that nobody could turn is as the machine has it.
    assert value("speedup(malloc=jemalloc, knob:thp-enabled=never)") == 1.5
    assert read(parse_term("local(malloc=jemalloc)")) == "local was not measured"
    assert read(parse_term("time(malloc=hoard)")) == "nothing was run with malloc=hoard"
    assert "no peak" in str(read(parse_term("peak()")))
    base = read(parse_term("speedup()"))
    assert isinstance(base, Reading) and base.by_name


def papers_seconds(setting: Setting) -> float:
    """In the papers' order: what is later in an axis is faster, but huge pages and all threads."""
    fast = {
        "sparse": 1.4,
        "interleave": 1.5,
        "tbbmalloc": 1.6,
        "tcmalloc": 1.2,
        "jemalloc": 1.3,
        "art": 2.0,
        "btree": 2.0,
        "knob:numa-balancing=0": 1.3,
        "knob:thp-enabled=never": 1.3,
    }
    if setting.get("index") == "skiplist":  # no allocator helps it
        fast |= dict.fromkeys(("tbbmalloc", "tcmalloc", "jemalloc"), 0.7)
    placed = setting.get("threads") == "all" and "placement" in setting
    seconds = 1.0
    for name, value in setting.items():
        if not (placed and name == "placement"):
            seconds /= fast.get(value, 1) * fast.get(f"{name}={value}", 1)
    return seconds


def ours(one: Experiment, *, reverse: bool) -> Ours:
    assert one.workload
    settings = make_settings(one.workload, LARGE, ALL).all

    def of(setting: Setting, block: int) -> WorkloadResult:
        seconds = papers_seconds(setting)
        bound = (setting.get("placement") == "sparse") is not reverse
        near = (setting["memory"] == "first-touch") is not reverse if "memory" in setting else bound
        return result(
            1 / seconds if reverse else seconds,
            migrations=1 if bound else 500,
            local_share_estimated=0.8 if near else 0.5,
        )

    return of_workloads(one, runs(settings, of), "r.json")


@pytest.mark.parametrize("one", OF_WORKLOADS, ids=lambda one: one.name)
def test_each_claim_holds_in_the_papers_order_and_not_in_the_reverse(one: Experiment) -> None:
    assert one.workload
    settings = make_settings(one.workload, LARGE, ALL)
    assert unjudged_workloads(one, LARGE, settings) == []
    for reverse, outcome in ((False, "held"), (True, "did not hold")):
        for verdict in verdicts(one, ours(one, reverse=reverse)).values():
            assert verdict.outcome == outcome, verdict.reasons


def test_what_the_paper_keeps_from_a_section_on_is_kept() -> None:
    """Threads are bound sparsely after III-B, AutoNUMA and huge pages are off after IV-C."""
    axes = {one.name: one.workload.axes for one in OF_WORKLOADS if one.workload}
    for name in ("fig5a", "fig5b", "fig5c", "fig5d", "fig6", "fig6j", "fig7"):
        assert axes[f"tuning-{name}"]["placement"] == ("sparse",)
    for name in ("fig6", "fig6j", "fig7"):
        assert axes[f"tuning-{name}"]["knob:numa-balancing"] == ("0",)
        assert axes[f"tuning-{name}"]["knob:thp-enabled"] == ("never",)


def registry_is_not_asked(engine: str) -> EngineTraits:
    raise AssertionError(engine)


def test_what_could_not_be_judged_is_known_before() -> None:
    one = get("tuning-fig6")
    assert one.workload
    settings = make_settings(one.workload, TWO_CORES, ALL)
    [line] = unjudged_workloads(one, TWO_CORES, settings)
    assert line.startswith("w1, w2, w3: ") and "memory=interleave" in line
    none = make_settings(one.workload, TWO_CORES, Can(()))
    with pytest.raises(UsageError, match="tuning-fig6 cannot be judged here"):
        unjudged_workloads(one, TWO_CORES, none)
    found = outlook(one, TWO_CORES, registry_is_not_asked, {}, lambda _: {}, ALL)
    assert found.here == "in part" and found.cost_s and found.cost_s["smoke"] == 5 * 3 * 4 * 0.3


def test_a_knob_that_was_not_turned_is_a_warning() -> None:
    one = get("tuning-fig5c")
    found = of_workloads(one, runs([{"malloc": "system"}], lambda *_: result()), "r.json")
    assert found.warnings == (
        "knob:thp-enabled was not turned: both sides have the machine's value",
    )
    emulated = runs([{"malloc": "system"}], lambda *_: result()).model_copy(
        update={"emulated": True}
    )
    assert of_workloads(one, emulated, "r.json").basis == "emulated"


@dataclass
class Started:
    """Stands in for atoll-workload."""

    words: list[list[str]] = field(default_factory=list)
    fails_at: int = -1

    def __call__(self, host: Host, own: Sequence[str], launch: Sequence[str]) -> WorkloadResult:
        if len(self.words) == self.fails_at:
            raise CheckFailed("wrong answer")
        self.words.append([*own, *launch])
        return result(workload=own[0])


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    found = Started()
    monkeypatch.setattr(workload_run, "run_workload", found)
    monkeypatch.setattr(workload_run, "emulated", lambda host: False)
    return found


def measure(
    tmp_path: Path,
    length: Length,
    kept: list[WorkloadRuns] | None = None,
    chosen: WorkloadRun | None = None,
    earlier: WorkloadRuns | None = None,
) -> WorkloadRuns:
    chosen = chosen or run({"malloc": ("system", "jemalloc")})
    host = FakeHost({"/proc/stat": "cpu 1 0 0 0 0 0 0 0\n"})
    return measure_workloads(
        host,
        chosen,
        TWO_CORES,
        make_settings(chosen, TWO_CORES, ALL),
        scale=SCALE,
        length=length,
        folder=JournalFolder(tmp_path),
        keep=(kept if kept is not None else []).append,
        say=lambda text: None,
        earlier=earlier,
    )


def test_a_resumed_run_goes_on_after_the_last_whole_block(tmp_path: Path, started: Started) -> None:
    earlier = measure(tmp_path, Length(1)).model_copy(update={"warnings": ("busy",)})
    del started.words[:]
    found = measure(tmp_path, Length(3), earlier=earlier)
    assert [one.block for one in found.runs] == [0] * 4 + [1] * 4 + [2] * 4
    assert found.runs[:4] == earlier.runs and found.warnings[:1] == ("busy",)
    assert ["--no-check" not in words for words in started.words] == [True] * 4 + [False] * 4
    order = [(one.result.workload, one.setting["malloc"]) for one in found.runs]
    assert order[4:8] == order[3::-1]
    assert measure(tmp_path, Length(3), earlier=found) == found  # nothing is left to do
    assert len(measure(tmp_path, Length(3, within_s=0.0), earlier=found).runs) == 16


def test_only_the_same_runs_are_resumed(tmp_path: Path, started: Started) -> None:
    chosen = run({"malloc": ("system", "jemalloc")}).model_copy(update={"workloads": ("w1",)})
    path, settings = tmp_path / "r.json", make_settings(chosen, TWO_CORES, ALL)
    found = measure(tmp_path, Length(1), chosen=chosen)
    path.write_text(found.model_dump_json())
    assert resumable(path, TWO_CORES, settings, TINY) == found  # 100 records
    others = make_settings(run({"malloc": ("system", "tcmalloc")}), TWO_CORES, ALL)
    for machine, now, scale, what in (
        (restrict(TWO_CORES, pus=[0]), settings, TINY, "allowed CPUs"),
        (TWO_CORES, settings, SCALE, "size"),
        (TWO_CORES, others, TINY, "settings"),
        (LARGE, settings, TINY, "machine"),
    ):
        with pytest.raises(UsageError, match=f"differs in its {what}"):
            resumable(path, machine, now, scale)


def test_every_second_block_is_in_reverse_and_the_first_one_checks(
    tmp_path: Path, started: Started
) -> None:
    kept: list[WorkloadRuns] = []
    found = measure(tmp_path, Length(3), kept)
    assert kept[-1] == found and [len(one.runs) for one in kept] == [4, 8, 12]
    order = [(one.result.workload, one.setting["malloc"]) for one in found.runs]
    first, second, third = order[:4], order[4:8], order[8:]
    assert first == third == second[::-1] and len({*first}) == 4
    assert ["--no-check" not in words for words in started.words] == [True] * 4 + [False] * 8
    path = tmp_path / "r.json"
    path.write_text(found.model_dump_json())
    assert read_document(WorkloadRuns, path) == found
    with pytest.raises(UsageError, match="cannot be read"):
        read_document(WorkloadRuns, tmp_path / "none.json")


def test_a_time_gives_at_least_one_block(tmp_path: Path, started: Started) -> None:
    assert len(measure(tmp_path, Length(5, within_s=0.0)).runs) == 4


def test_a_wrong_answer_ends_it_and_whole_blocks_stay(tmp_path: Path, started: Started) -> None:
    started.fails_at = 6
    kept: list[WorkloadRuns] = []
    with pytest.raises(CheckFailed, match="wrong answer"):
        measure(tmp_path, Length(5), kept)
    assert [len(one.runs) for one in kept] == [4]


def test_knobs_are_turned_for_each_run_and_restored(
    tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned: list[Mapping[str, str]] = []

    @contextmanager
    def turning(before: Mapping[str, str], *_: object) -> Iterator[Callable[..., None]]:
        yield turned.append
        turned.append(before)

    monkeypatch.setattr(switches, "restore", lambda *_: "restored thp-enabled=always")
    monkeypatch.setattr(switches, "present_values", lambda *_: {"thp-enabled": "madvise"})
    monkeypatch.setattr(switches, "turning", turning)
    chosen = run({"knob:thp-enabled": ("always", "never")})
    found = measure(tmp_path, Length(2), chosen=chosen)
    values = [one["thp-enabled"] for one in turned]
    assert values == [*2 * ("always", "never"), *2 * ("never", "always"), "madvise"]
    assert "restored thp-enabled=always" in found.warnings
