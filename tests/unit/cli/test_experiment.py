"""`atoll experiment`: what the list, the file and a refusal look like."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from atoll.bench.results import ResultsWriter
from atoll.cli import run
from atoll.cli.measuring import RunOptions
from atoll.errors import AtollError, EngineFailed
from atoll.experiments import workload_run
from atoll.experiments.catalog import experiments, get
from atoll.experiments.here import Can
from atoll.schema.experiment import Needs, WorkloadScale
from atoll.schema.workload import WorkloadRuns
from atoll.store.document import read_document
from tests.parts.bench_grid import MEASURED
from tests.parts.kernels import every_kernel, kernel
from tests.parts.machines import NodeShape, build

NAMES = [one.name for one in experiments()]
SMALL = build([[NodeShape(rest=2)]])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atoll.cli.experiment.machine_for", lambda: SMALL)
    can = Can(("tbbmalloc",))
    for where in ("experiment", "workload_experiment"):
        monkeypatch.setattr(f"atoll.cli.{where}.what_can", lambda _: can)
    monkeypatch.setattr("atoll.probing.measure.chosen_cpus", lambda *_: (0, 1))
    monkeypatch.setattr("atoll.inspect.resctrl.memory_traffic", lambda *_: None)
    monkeypatch.setenv("COLUMNS", "80")


def test_the_list_has_every_experiment_within_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["experiment", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:-2] if line[0] != " "] == NAMES
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
    assert rows["olap-tab2"].startswith("yes 15 s, 38 min, – Peak memory")
    assert rows["numa-fig7"].startswith("no needs 2 NUMA nodes ")
    assert rows["numa-fig12"].startswith(("yes 16 min, 2.0 h WIN", "no needs root"))
    assert lines[-1] == "no, in part: 'atoll experiment show NAME' has the reasons"
    assert max(map(len, lines)) <= 80


def test_the_list_as_json_has_the_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["experiment", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found] == NAMES
    assert all((one["here"] == "no") == (not one["cost_s"]) for one in found)
    [tab2] = [one for one in found if one["name"] == "olap-tab2"]
    assert tab2["cost_s"] == {"smoke": 15, "small": 2250, "paper": None}
    [tab1] = [one for one in found if one["name"] == "numa-tab1"]
    assert tab1["why"][0] == "it needs 2 NUMA nodes, and this machine has 1"
    assert "mount -t resctrl" in tab1["why"][1]


@pytest.mark.parametrize("name", NAMES)
def test_all_of_a_file_is_shown_within_80_columns(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["experiment", "show", name]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    for title in ("Claim", "This machine", "Run", "Numbers of the paper", "The paper is silent"):
        assert f"\n{title}" in text


def test_results_are_reported_as_text_and_as_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "r.jsonl"
    with ResultsWriter.create(results, MEASURED.header) as writer:
        for line in MEASURED.lines:
            writer.append(line)
    page = tmp_path / "fig12.html"
    assert run(["experiment", "report", "olap-fig12", str(results), str(results)]) == 0
    text = capsys.readouterr().out
    assert "A measured" in text and "B measured" in text and "\nA, spark: " in text
    assert run(["experiment", "report", "olap-fig12", str(results), "-o", str(page)]) == 0
    assert "<!doctype html>" in page.read_text()
    assert run(["experiment", "report", "olap-fig13", str(results)]) == 2
    assert run(["experiment", "report", "olap-fig3", str(results)]) == 2
    assert run(["experiment", "report", "olap-fig12", str(results), "-o", "x.md"]) == 2


def test_an_unknown_experiment_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["experiment", "show", "bogus"]) == 2
    assert capsys.readouterr().err.startswith("atoll: no experiment 'bogus'; ")


def test_a_scale_that_does_not_fit_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["experiment", "run", "olap-tab2", "--scale", "paper"]) == 2
    assert "choose a smaller --scale" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--resume"], "--resume continues a results file; name it with -o"),
        (["--engines", ","], "--engines names no engine"),
        (["-o", "/nowhere/r.jsonl"], "/nowhere"),
    ],
)
def test_what_a_run_refuses_at_once(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["experiment", "run", "olap-tab2", "--scale", "smoke", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> list[AtollError]:
    """A bench that writes results of other queries, and fails with what the list has."""
    faults: list[AtollError] = []

    def measure(options: object, given: RunOptions, *rest: object, **more: object) -> None:
        assert given.output
        with ResultsWriter.create(given.output, MEASURED.header) as writer:
            for line in MEASURED.lines:
                writer.append(line)
        for fault in faults:
            raise fault

    monkeypatch.setattr("atoll.cli.experiment.measure_suite", measure)
    monkeypatch.setattr("atoll.cli.experiment.ready", lambda names: ([*names], []))
    return faults


def test_queries_that_failed_are_named_though_the_claim_did_not_hold(
    tmp_path: Path,
    bench: list[AtollError],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench.append(EngineFailed("1 query failed: q6"))
    fig8 = get("olap-fig8")
    check = fig8.check.model_copy(update={"shape": "speedup(n=2) > 9"})
    assert fig8.bench
    can = fig8.bench.model_copy(update={"axes": {"n": ("2",)}})
    wrong = fig8.model_copy(update={"check": check, "needs": Needs(), "bench": can})
    monkeypatch.setattr("atoll.cli.experiment.get", lambda _: wrong)
    assert run(["experiment", "run", "x", "--scale", "smoke", "-o", str(tmp_path / "r")]) == 1
    *_, fault, last = capsys.readouterr().err.splitlines()
    assert fault == "atoll: 1 query failed: q6"
    assert last == "atoll: olap-fig8: the claim did not hold for spark"


@pytest.mark.parametrize(
    ("more", "guessed"),
    [([], True), (["--within", "2s"], False), (["--engines", "spark"], False)],
)
def test_a_time_that_is_given_or_of_other_engines_is_not_guessed(
    more: list[str],
    guessed: bool,
    tmp_path: Path,
    bench: list[AtollError],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(tmp_path / "r")
    assert run(["experiment", "run", "olap-tab2", "--scale", "smoke", "-o", path, *more]) == 0
    assert ("by our guess" in capsys.readouterr().err) == guessed


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--engines", "spark"], "tuning-fig3 runs workloads; leave out --engines"),
        (["--resume"], "--resume continues a results file; name it with -o"),
        (["--resume", "-o", "/nowhere/r.json"], "/nowhere/r.json: cannot be read"),
        (["-o", __file__], "exists; continue it with --resume, or choose another file with -o"),
    ],
)
def test_what_workloads_refuse_at_once(
    more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["experiment", "run", "tuning-fig3", "--scale", "smoke", *more]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "axes", "settings"),
    [
        ("tuning-fig3", {"placement": ("none", "sparse")}, 2),
        (
            "tuning-fig6j",
            {"malloc": ("system", "tbbmalloc"), "dataset": ("runs", "sequential", "zipf")},
            6,
        ),
        ("tuning-fig7", {"index": ("art", "masstree", "btree", "skiplist")}, 4),
    ],
)
def test_workloads_are_run_and_reported(
    name: str,
    axes: dict[str, tuple[str, ...]],
    settings: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the real program, at a size of milliseconds."""
    one = get(name)
    assert one.workload
    tiny = {"smoke": WorkloadScale(part=0.00002, run_s=0.1)}
    small = one.workload.model_copy(update={"axes": axes, "scales": tiny})
    monkeypatch.setattr(
        "atoll.cli.experiment.get", lambda _: one.model_copy(update={"workload": small})
    )
    path = str(tmp_path / "r.json")
    assert run(["experiment", "run", name, "--scale", "smoke", "-o", path]) in (0, 1)
    said = capsys.readouterr()
    assert f"{settings} settings of 1 workload in each of 5 blocks" in said.err
    verdict = f"\nA, {one.workload.workloads[0]}: "
    table, _, _ = said.out.partition("\nMachines\n")
    assert " workload " in table and table.count("time(") == settings  # also what no claim names
    assert " records (2e-05 of the paper's); r.json " in " ".join(said.out.split())
    assert verdict in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    assert run(["experiment", "report", name, path]) == 0
    assert verdict in capsys.readouterr().out
    page = tmp_path / "r.html"
    assert run(["experiment", "report", name, path, "-o", str(page)]) == 0
    assert "<!doctype html>" in page.read_text()
    done = Path(path).read_bytes()
    again = ["experiment", "run", name, "--scale", "smoke", "-o", path, "--resume"]
    assert run(again) in (0, 1) and Path(path).read_bytes() == done
    assert "nothing is left to measure" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_workloads_leave_no_process_and_go_on(number: int, tmp_path: Path) -> None:
    """The real command, by Ctrl-C and by SIGTERM."""
    path = tmp_path / "r.json"
    argv = [sys.executable, "-m", "atoll", "experiment", "run", "tuning-fig3"]
    argv += ["--scale", "smoke", "--within", "1h", "-o", str(path)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 120
        while not path.exists() or not (below := children(running.pid)):
            assert running.poll() is None and time.monotonic() < until
            time.sleep(0.01)
        running.send_signal(number)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert said.endswith(f"to go on, repeat the command with -o {path} --resume\n")
    assert "Traceback" not in said
    while any(Path(f"/proc/{pid}").exists() for pid in below):  # the kernel ends what just started
        assert time.monotonic() < until
        time.sleep(0.01)
    before = read_document(WorkloadRuns, path).runs
    argv[argv.index("1h")] = "1s"
    done = subprocess.run([*argv, "--resume"], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    after = read_document(WorkloadRuns, path).runs
    assert after[: len(before)] == before and after[len(before)].block == before[-1].block + 1


def children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_what_cannot_be_judged_is_refused_before_it_is_run(
    bench: list[AtollError],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fig7 = get("numa-fig7").model_copy(update={"needs": Needs()})
    monkeypatch.setattr("atoll.cli.experiment.get", lambda _: fig7)
    assert run(["experiment", "run", "numa-fig7", "--scale", "smoke"]) == 2
    assert "numa-fig7 cannot be judged here: duckdb: speedup(policy=win) > 1: it is its own " in (
        capsys.readouterr().err
    )
    assert run(["experiment", "show", "numa-fig7"]) == 0
    assert "smoke: cannot: numa-fig7 cannot be judged here" in capsys.readouterr().out


def test_a_kernel_is_tried_where_its_figure_means_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        workload_run, "run_kernel", lambda host, own, launch: kernel(workload=own[0])
    )
    run_of = get("arcas-fig10").workload
    assert run_of
    can = every_kernel(run_of)
    monkeypatch.setattr("atoll.cli.workload_experiment.what_can", lambda _: can)
    path = tmp_path / "r.json"
    assert run(["experiment", "run", "arcas-fig10", "--scale", "smoke", "-o", str(path)]) == 0
    said = capsys.readouterr()
    assert "a try only, since it means nothing here: it needs 2 chiplets" in said.err
    assert "A, sgd: could not be judged" in said.out
    assert len(read_document(WorkloadRuns, path).runs) >= 5
    assert run(["experiment", "run", "arcas-fig10", "--scale", "small"]) == 2
    assert "means nothing on this machine" in capsys.readouterr().err
