"""`atoll operators apply` where nothing can be bound: the answer and the reason; what `watch`
refuses; `show` of a comparison."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atoll.cli import run
from atoll.schema.operator_runs import OperatorRound, OperatorRun, OperatorRuns
from atoll.schema.placement import Deployment
from tests.parts.faults import check_complaint
from tests.parts.machines import NodeShape, build
from tests.parts.placed import graph, placement
from tests.parts.profiles import profile

Capture = pytest.CaptureFixture[str]


def written(
    folder: Path, engine: str, cores: int | None = None, deployment: Deployment = "packed"
) -> str:
    """Of two operators on one core, or of as many as cores."""
    names = {"a": 0, "b": 0} if cores is None else {f"op{one}": one for one in range(cores)}
    plan = placement(names).model_copy(update={"engine": engine, "deployment": deployment})
    path = folder / "placement.json"
    path.write_text(plan.model_dump_json())
    return str(path)


def test_an_engine_that_cannot_be_placed_gets_an_answer_and_a_plan_of_that_size(
    tmp_path: Path, capsys: Capture
) -> None:
    output = tmp_path / "plan.json"
    assert run(["operators", "apply", written(tmp_path, "duckdb"), "-o", str(output)]) == 2
    said = capsys.readouterr()
    assert "need 1 core" in said.out
    assert said.err.startswith("atoll: ")
    (slot,) = json.loads(output.read_text())["slots"]
    assert len(slot["cpus"]) == 1


def test_the_answer_as_json(tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "plan.json"
    path = written(tmp_path, "duckdb")
    assert run(["operators", "apply", path, "--json", "-o", str(output)]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found == {"engine": "duckdb", "operators": 2, "cores": 1, "fewest_cores": None}
    assert output.exists()


def test_the_answer_comes_before_a_plan_that_this_machine_is_too_small_for(
    tmp_path: Path, capsys: Capture
) -> None:
    path, output = written(tmp_path, "duckdb", cores=6), tmp_path / "plan.json"
    machine = tmp_path / "machine.json"
    for cores, made in ((2, False), (8, True)):
        machine.write_text(build([[NodeShape(rest=cores)]]).model_dump_json())
        given = ["-o", str(output), "--machine", str(machine)]
        assert run(["operators", "apply", path, *given]) == 2
        assert "6 operators of duckdb need 6 cores" in capsys.readouterr().out
        assert output.exists() is made
    assert run(["operators", "apply", path, "--machine", str(machine)]) == 2
    check_complaint(capsys.readouterr().err, option="--machine")


def test_only_a_packed_placement_says_how_many_cores_are_needed(
    tmp_path: Path, capsys: Capture
) -> None:
    path = written(tmp_path, "duckdb", deployment="per-core")
    assert run(["operators", "apply", path]) == 2
    said = capsys.readouterr()
    assert not said.out
    check_complaint(said.err, path=path, deployment="per-core")


@pytest.mark.parametrize("engine", ["", "no-such-program", "postgresql", "sharedplan"])
def test_without_a_program_to_place_it_is_refused(
    tmp_path: Path, capsys: Capture, engine: str
) -> None:
    path = written(tmp_path, engine)
    assert run(["operators", "apply", path]) == 2
    said = capsys.readouterr()
    assert not said.out
    check_complaint(said.err, **({"engine": engine} if engine else {"path": path}))


def test_watch_refuses_a_placement_that_does_not_depend_on_activities(
    tmp_path: Path, capsys: Capture
) -> None:
    path, planned = written(tmp_path, "postgresql", deployment="os"), tmp_path / "graph.json"
    planned.write_text(graph({"a": 0.1}).model_dump_json())
    assert run(["operators", "watch", path, str(planned), "--url", "postgresql://far"]) == 2
    check_complaint(capsys.readouterr().err, path=path, deployment="os")


def test_show_names_the_reason_of_a_refused_comparison(tmp_path: Path, capsys: Capture) -> None:
    found = OperatorRuns(
        program="made-up",
        machine=build([[NodeShape(rest=2)]]),
        environment=profile("made-up", 2).environment,
        emulated=False,
        graph=graph({"a": 0.1}),
        unit="works/s",
        warmup_s=1,
        measured_s=2,
        refused={"per-core": "this machine is too small"},
        rounds=(
            OperatorRound(
                headroom=0.2,
                placements=(placement({"a": 0}),),
                runs=(
                    OperatorRun(
                        block=0,
                        deployment="packed",
                        per_window=(99, 101),
                        p50_ms=1,
                        p90_ms=2,
                        p99_ms=3,
                        backlog=False,
                        cores_used=1,
                        threads=1,
                        drifted=0,
                        idle_before=1,
                    ),
                ),
            ),
        ),
    )
    path = tmp_path / "runs.json"
    path.write_text(found.model_dump_json())
    assert run(["operators", "show", str(path)]) == 0
    said = capsys.readouterr().out
    assert "this machine is too small" in said
    assert max(map(len, said.splitlines())) <= 120
