"""`atoll operators plan` and `show`: what they print, write and refuse."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from atoll.cli import run
from atoll.schema.placement import Placement
from tests.parts.faults import check_complaint
from tests.parts.machines import NodeShape, build
from tests.parts.operators import graph, operator
from tests.parts.paths import GOLDEN
from tests.parts.placed import placement

Capture = pytest.CaptureFixture[str]
TPCW = str(GOLDEN / "operators" / "tpcw-44.json")


@pytest.fixture
def machine(tmp_path: Path) -> str:
    """Eight nodes of two cores."""
    path = tmp_path / "machine.json"
    path.write_text(build([[NodeShape((), 2)] * 2] * 4).model_dump_json())
    return str(path)


def test_a_plan_is_printed_written_and_drawn(machine: str, tmp_path: Path, capsys: Capture) -> None:
    placement, drawing = tmp_path / "p.json", tmp_path / "p.svg"
    written = ["-o", str(placement), "--svg", str(drawing)]
    assert run(["operators", "plan", TPCW, "--machine", machine, "--explain", *written]) == 0
    shown = capsys.readouterr().out
    assert "6 cores; fewer than 6 cannot do: the operators keep 4.06 cores busy" in shown
    assert "3 nodes; fewer than 3 cannot do" in shown and "why there" in shown
    assert max(map(len, shown.splitlines())) <= 80
    found = Placement.model_validate_json(placement.read_text())
    assert len(found.cores) == 6
    texts = [one.text for one in ElementTree.parse(drawing).iter() if one.tag.endswith("text")]
    assert {"scan order_line", "top best", "CPU 5", "100 %"} <= set(texts)
    assert sum(text == "CPU 0" for text in texts) == 1

    assert run(["operators", "show", str(placement)]) == 0
    assert capsys.readouterr().out == shown[shown.index("CPU  node") :]
    loads = tmp_path / "loads.svg"
    assert run(["operators", "show", str(placement), "--json", "--svg", str(loads)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(placement.read_text())
    assert "Before: a core for each of" in (drawn := loads.read_text()) and " units" in drawn


def test_one_core_is_busy(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "g.json"
    path.write_text(graph([operator(name, 0.5) for name in "ab"]).model_dump_json())
    assert run(["operators", "show", str(path)]) == 0
    assert "; 1 core busy" in capsys.readouterr().out


def test_a_graph_is_shown_and_drawn(tmp_path: Path, capsys: Capture) -> None:
    drawing = tmp_path / "g.svg"
    assert run(["operators", "show", TPCW, "--svg", str(drawing)]) == 0
    assert "44 operators, 55 edges; 4.06 cores busy" in " ".join(capsys.readouterr().out.split())
    ElementTree.parse(drawing)


def test_every_name_is_shown_and_drawn_as_text(
    machine: str, tmp_path: Path, capsys: Capture
) -> None:
    """An operator's name is the engine's, so it may have any letters."""
    path, drawing = tmp_path / "g.json", tmp_path / "g.svg"
    names = ("<script>", "a&b", "\x1b[31mred")
    path.write_text(graph([operator(name, 0.1) for name in names]).model_dump_json())
    for command in (["plan", str(path), "--machine", machine], ["show", str(path)]):
        assert run(["operators", *command, "--svg", str(drawing)]) == 0
        drawn = "".join(ElementTree.parse(drawing).getroot().itertext())
        assert "<script>" in drawn and "a&b" in drawn
        assert "[31mred" in (shown := capsys.readouterr().out) and "\x1b" not in shown


def test_an_unknown_duty_is_no_figure(machine: str, tmp_path: Path, capsys: Capture) -> None:
    path, drawing = tmp_path / "g.json", tmp_path / "g.svg"
    path.write_text(graph([operator("a", 0.5), operator("b", None)]).model_dump_json())
    each = ["plan", str(path), "--machine", machine, "--deployment", "per-core"]
    assert run(["operators", *each, "--explain", "--svg", str(drawing)]) == 0
    shown = capsys.readouterr().out
    assert "50 %" in shown and "0 %" not in shown.replace("50 %", "")
    assert "b: not known" in drawing.read_text()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"cache_bytes":7', f'"cache_bytes":1{400 * "0"}'),
        ('"cache_bytes":7', f'"cache_bytes":1{5000 * "0"}'),
        ('"value":0.5', '"value":true'),
        ('"node":null', '"node":true'),
        ('"operators":[', '"operators":' + 100_000 * "["),
        ('"format":"atoll/operators",', ""),
    ],
)
def test_hostile_files_are_refused(old: str, new: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "g.json"
    whole = graph([operator("a", 0.5, cache_bytes=7)]).model_dump_json()
    path.write_text(whole.replace(old, new))
    assert run(["operators", "show", str(path)]) == 2
    check_complaint(capsys.readouterr().err, path=path)


def test_an_empty_name_of_an_output_is_said(machine: str, capsys: Capture) -> None:
    assert run(["operators", "plan", TPCW, "--machine", machine, "-o", ""]) == 2
    check_complaint(capsys.readouterr().err)


def test_a_long_circle_is_cut(machine: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "g.json"
    names = [f"op{one}" for one in range(50)]
    circle = graph([operator(name, 0.1) for name in names], pairwise([*names, names[0]]))
    path.write_text(circle.model_dump_json())
    assert run(["operators", "plan", str(path), "--machine", machine]) == 2
    check_complaint(capsys.readouterr().err, path=path)


def test_a_circle_is_not_drawn(tmp_path: Path, capsys: Capture) -> None:
    path, drawing = tmp_path / "g.json", tmp_path / "g.svg"
    circle = graph([operator(name, 0.1) for name in "ab"], [("a", "b"), ("b", "a")])
    path.write_text(circle.model_dump_json())
    assert run(["operators", "show", str(path), "--svg", str(drawing)]) == 2
    check_complaint(capsys.readouterr().err, path=path)
    assert not drawing.exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"cpu":0,"duty"', '"cpu":7,"duty"'),
        ('"chiplet":null,"node":0', '"chiplet":null,"node":7'),
    ],
)
def test_a_placement_whose_parts_disagree(
    tmp_path: Path, capsys: Capture, old: str, new: str
) -> None:
    path = tmp_path / "p.json"
    text = placement({"a": 0, "b": 1}).model_dump_json()
    assert old in text
    path.write_text(text.replace(old, new))
    for command in (["show", str(path), "--svg", str(tmp_path / "p.svg")], ["apply", str(path)]):
        assert run(["operators", *command]) == 2
        check_complaint(capsys.readouterr().err, file=str(path))


def test_what_is_refused(machine: str, tmp_path: Path, capsys: Capture) -> None:
    missing = str(tmp_path / "none.json")
    assert run(["operators", "plan", missing]) == 2
    check_complaint(capsys.readouterr().err, file=missing)
    free = str(tmp_path / "os.json")
    assert (
        run(["operators", "plan", TPCW, "--machine", machine, "--deployment", "os", "-o", free])
        == 0
    )
    capsys.readouterr()
    assert run(["operators", "show", free, "--svg", str(tmp_path / "os.svg")]) == 2
    check_complaint(capsys.readouterr().err)
    assert not (tmp_path / "os.svg").exists()
