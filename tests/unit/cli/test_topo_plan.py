"""`atoll topo` and `atoll plan` from the command line: exit codes, JSON, files, one-line errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from atoll.cli import options as machine_of
from atoll.cli import run
from atoll.errors import TopologyError
from atoll.host.environment import hostname_hash
from atoll.host.local import LocalHost
from atoll.probing import profiles
from atoll.schema.base import parse
from atoll.schema.machine import Machine
from atoll.schema.plan import Plan, Policy
from atoll.schema.profile import Profile
from tests.parts.faults import check_complaint
from tests.parts.machines import NodeShape, build, milan, plain, restrict
from tests.parts.profiles import sapphire_rapids

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def milan_file(tmp_path: Path) -> str:
    path = tmp_path / "milan.json"
    path.write_text(milan(2, 8, 8, memory_gib=256).model_dump_json())
    return str(path)


def refused(capsys: Capture, *argv: str, code: int = 2, **fields: object) -> None:
    """The command ends with this exit code and one line that names the fields."""
    assert run(list(argv)) == code
    out, err = capsys.readouterr()
    assert out == ""
    check_complaint(err, **fields)


def plan_of(capsys: Capture, *argv: str) -> Plan:
    assert run(["plan", *argv, "--json"]) == 0
    return parse(Plan, capsys.readouterr().out, where="stdout")


def test_topo_shows_this_machine(capsys: Capture) -> None:
    assert run(["topo"]) == 0
    out = capsys.readouterr().out
    assert "package 0" in out
    assert "\x1b" not in out, "colour is for terminals"
    assert max(map(len, out.splitlines())) <= 80


def test_topo_json_begins_with_the_summary(capsys: Capture, milan_file: str) -> None:
    assert run(["topo", "--machine", milan_file, "--json"]) == 0
    out = capsys.readouterr().out
    assert list(json.loads(out))[:2] == ["summary", "chiplets"]
    machine = parse(Machine, out, where="stdout", error=TopologyError)
    assert machine == milan(2, 8, 8, memory_gib=256)


def test_topo_reads_a_synthetic_string(capsys: Capture) -> None:
    argv = ["topo", "--synthetic", "Package:2 L3Cache:4 Core:4 PU:2", "--json"]
    assert run(argv) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert (summary["packages"], summary["chiplets"], summary["cores"]) == (2, 8, 32)


def test_topo_takes_chiplets_from_the_user(capsys: Capture) -> None:
    argv = ["topo", "--synthetic", "Package:2 Core:28 PU:2", "--chiplets", "cores=14", "--json"]
    assert run(argv) == 0
    chiplets = json.loads(capsys.readouterr().out)["chiplets"]
    assert [chiplet["source"] for chiplet in chiplets] == ["user"] * 4


def test_topo_writes_an_svg(capsys: Capture, milan_file: str, tmp_path: Path) -> None:
    svg = tmp_path / "picture.svg"
    assert run(["topo", "--machine", milan_file, "--svg", str(svg)]) == 0
    assert svg.read_text().startswith("<svg ")


def test_topo_refuses_what_it_cannot_read(capsys: Capture, tmp_path: Path) -> None:
    bad = tmp_path / "bad.xml"
    bad.write_text("<topology><object")
    missing = tmp_path / "none.xml"
    refused(capsys, "topo", "--machine", str(bad), code=3, path=bad)
    refused(capsys, "topo", "--machine", str(missing), code=3, path=missing)
    refused(capsys, "topo", "--synthetic", "nonsense:4", code=3, text="nonsense:4")
    both = ("--machine", "a", "--synthetic", "PU:2")
    refused(capsys, "topo", *both, option="--machine", other="--synthetic")
    refused(capsys, "topo", "--synthetic", "Core:8 PU:1", "--chiplets", "0;1", chiplet="chiplet 0")


def test_plan_prints_the_rule_and_its_source(capsys: Capture, milan_file: str) -> None:
    assert run(["plan", "spark", "--machine", milan_file]) == 0
    out = capsys.readouterr().out
    assert out.startswith("spark under wicp (chosen by auto)\n16 instances, 128 threads")
    assert "auto picks one instance per chiplet" in out
    assert "olap-on-chiplets" in out
    assert max(map(len, out.splitlines())) <= 80


def test_plan_explains_on_request(capsys: Capture, milan_file: str) -> None:
    run(["plan", "spark", "--machine", milan_file])
    short = capsys.readouterr().out
    assert run(["plan", "spark", "--machine", milan_file, "--explain"]) == 0
    full = capsys.readouterr().out
    assert "- heap: " in full and "- heap: " not in short


def test_a_plan_of_256_instances_fits_a_screen(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(milan(2, 16, 8, smt=2, memory_gib=2048).model_dump_json())
    assert run(["plan", "spark", "--machine", str(path), "--policy", "wic"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 50
    assert max(map(len, lines)) <= 80


def test_plan_options_reach_the_plan(capsys: Capture, milan_file: str) -> None:
    plan = plan_of(
        capsys, "spark", "--machine", milan_file, "--policy", "win", "-n", "4",
        "--memory", "preferred", "--placement", "sparse", "--coordinator", "reserved:8",
    )  # fmt: skip
    assert plan.policy is Policy.WIN
    assert [slot.cores for slot in plan.slots] == [30] * 4
    assert plan.slots[0].memory_policy == "preferred"
    assert sorted(plan.slots[0].thread_cpus) == list(plan.slots[0].cpus or ())
    assert plan.coordinator is not None and plan.coordinator.cpus == tuple(range(120, 128))


def test_plan_names_a_nic_only_with_listen(capsys: Capture, milan_file: str) -> None:
    assert plan_of(capsys, "trino").addresses == ()
    here = plan_of(capsys, "trino", "--listen", "127.0.0.9")
    assert {slot.address for slot in here.slots} == {"127.0.0.9"}
    there = plan_of(capsys, "trino", "--machine", milan_file, "--listen", "10.0.0.5")
    assert there.addresses == ("10.0.0.5",)
    assert run(["plan", "trino", "--machine", milan_file, "--listen", "nic"]) == 2
    assert run(["plan", "postgresql", "--listen", "127.0.0.9"]) == 2


def test_plan_takes_chiplets_from_the_user(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(build([[NodeShape((), 28, 64)]]).model_dump_json())
    argv = ["spark", "--machine", str(path), "--chiplets", "cores=14"]
    assert [slot.cores for slot in plan_of(capsys, *argv).slots] == [14, 14]


def test_plan_uses_allowed_cpus_only(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_text(restrict(milan(1, 4, 4), pus=range(2, 8)).model_dump_json())
    plan = plan_of(capsys, "spark", "--machine", str(path), "--policy", "wicp")
    assert [slot.cpus for slot in plan.slots] == [(2, 3), (4, 5, 6, 7)]


def test_plan_writes_a_file_and_compares_with_it(
    capsys: Capture, milan_file: str, tmp_path: Path
) -> None:
    saved = tmp_path / "plan.json"
    base = ["plan", "spark", "--machine", milan_file]
    assert run([*base, "--policy", "win", "-o", str(saved)]) == 0
    capsys.readouterr()
    assert run([*base, "--policy", "win", "--compare", str(saved)]) == 0
    assert capsys.readouterr().out == "no changes\n"
    assert run([*base, "--policy", "wim", "--compare", str(saved)]) == 0
    assert "~ slot 0 cpus: 0-63 -> no mask" in capsys.readouterr().out
    assert run([*base, "--policy", "wim", "--compare", str(saved), "--json"]) == 0
    changes = json.loads(capsys.readouterr().out)
    assert {change["kind"] for change in changes} == {"changed", "removed"}


def test_identical_input_gives_identical_plans(capsys: Capture, milan_file: str) -> None:
    texts = set()
    for _ in range(3):
        assert run(["plan", "spark", "--machine", milan_file, "--json"]) == 0
        texts.add(capsys.readouterr().out)
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["nosuch"], {"engine": "nosuch"}),
        (["spark", "-n", "129"], {"asked": "-n 129", "cores": 128}),
        (["spark", "-n", "0"], {"option": "-n", "asked": 0}),
        (["spark", "-n", "x"], {"option": "-n", "text": "'x'"}),
        (["spark", "--policy", "wimp"], {"policy": "wimp"}),
        (["spark", "--policy", "wim", "-n", "2"], {"asked": 2, "policy": "wim"}),
        (["spark", "--coordinator", "reserved:128"], {"option": "--coordinator", "cores": 128}),
        (["duckdb", "--coordinator", "shared"], {"option": "--coordinator", "engine": "duckdb"}),
        (["spark", "--chiplets", "0-999"], {"cpus": "0-999"}),
        (["spark", "--compare", "/no/such/plan.json"], {"path": "/no/such/plan.json"}),
        (["spark", "--heap", "9TiB"], {"asked": "9 TiB"}),
        (["spark", "--heap", "much"], {"option": "--heap", "text": "'much'"}),
        (["spark", "--page-cache", "99%"], {"asked": "99 %"}),
        (["spark", "--reserve", "2TiB"], {"asked": "2 TiB"}),
        (["spark", "--reserve-cores", "128"], {"asked": "--reserve-cores 128"}),
        (["spark", "--malloc", "hoard"], {"malloc": "hoard"}),
    ],
)
def test_what_cannot_be_is_a_usage_error(
    capsys: Capture, milan_file: str, argv: list[str], named: dict[str, Any]
) -> None:
    refused(capsys, "plan", *argv, "--machine", milan_file, **named)


def test_a_plan_of_another_version_is_refused(
    capsys: Capture, milan_file: str, tmp_path: Path
) -> None:
    old = tmp_path / "plan.json"
    old.write_text('{"format": "atoll/plan", "version": 99}')
    argv = ("plan", "spark", "--machine", milan_file, "--compare", str(old))
    refused(capsys, *argv, path=old, version="version 99")


def test_a_plan_that_cannot_be_written_leaves_the_old_one(
    capsys: Capture, milan_file: str, tmp_path: Path
) -> None:
    path = tmp_path / "no" / "plan.json"
    refused(capsys, "plan", "spark", "--machine", milan_file, "-o", str(path), path=path)
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("command", ["topo", "plan"])
def test_help_has_an_example(capsys: Capture, command: str) -> None:
    assert run([command, "--help"]) == 0
    assert "Example" in capsys.readouterr().out


# ---- Chiplets from a profile


def tiles() -> Machine:
    """56 cores; the system shows no chiplets."""
    machine = plain(56, memory_gib=512)
    return machine.model_copy(update={"origin": machine.origin.model_copy(update={"kind": "live"})})


def profile_of(machine: Machine) -> Profile:
    made = sapphire_rapids()
    environment = made.environment.model_copy(
        update={"hostname_hash": hostname_hash(LocalHost()), "cpu_model": machine.cpu_model}
    )
    return made.model_copy(update={"machine_id": machine.machine_id, "environment": environment})


@pytest.fixture
def this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(machine_of, "read_machine", lambda *_: tiles())
    return tiles()


SAID = "(bandwidth, confidence 0.91)"


def test_a_saved_profile_is_used_where_the_system_shows_nothing(
    capsys: Capture, this_machine: Machine
) -> None:
    assert run(["plan", "spark", "--json"]) == 0
    before, err = capsys.readouterr()
    assert len(json.loads(before)["slots"]) == 1
    assert "profile" not in err
    path = profiles.save(profile_of(this_machine))
    assert run(["plan", "spark", "--json"]) == 0
    after, err = capsys.readouterr()
    assert [len(slot["cpus"]) for slot in json.loads(after)["slots"]] == [14] * 4
    assert f"atoll: chiplets from the profile {path} of 2026-01-01 {SAID}\n" in err
    assert json.loads(after)["machine_id"] == json.loads(before)["machine_id"]
    assert run(["topo", "--json"]) == 0
    out, err = capsys.readouterr()
    assert {chiplet["source"] for chiplet in json.loads(out)["chiplets"]} == {"bandwidth"}
    assert SAID in err
    assert run(["topo"]) == 0
    assert "4 chiplets (by measured bandwidth)" in capsys.readouterr().out


def test_the_users_word_comes_before_the_saved_profile(
    capsys: Capture, this_machine: Machine
) -> None:
    profiles.save(profile_of(this_machine))
    assert run(["topo", "--json", "--chiplets", "cores=28"]) == 0
    out, err = capsys.readouterr()
    assert [chiplet["source"] for chiplet in json.loads(out)["chiplets"]] == ["user"] * 2
    assert "profile" not in err


def test_a_saved_profile_says_nothing_of_a_machine_from_a_file(
    capsys: Capture, this_machine: Machine
) -> None:
    profiles.save(profile_of(this_machine))
    for argv in (["--machine", "machine.xml"], ["--synthetic", "Core:56"]):
        assert run(["topo", *argv, "--json"]) == 0
        out, err = capsys.readouterr()
        assert json.loads(out)["chiplets"] == []
        assert "profile" not in err


def test_a_named_profile_is_used_for_any_machine_that_it_is_of(
    capsys: Capture, tmp_path: Path
) -> None:
    machine, profile = tmp_path / "machine.json", tmp_path / "profile.json"
    machine.write_text(plain(56, memory_gib=512).model_dump_json())
    profile.write_text(profile_of(tiles()).model_dump_json())
    plan = plan_of(capsys, "spark", "--machine", str(machine), "--profile", str(profile))
    assert len(plan.slots) == 4
    assert run(["topo", "--machine", str(machine), "--profile", str(profile)]) == 0
    assert f"atoll: chiplets from the profile {profile} of" in capsys.readouterr().err


def test_a_profile_that_does_not_fit_is_a_usage_error(
    capsys: Capture, milan_file: str, tmp_path: Path
) -> None:
    path = tmp_path / "profile.json"
    path.write_text(profile_of(tiles()).model_dump_json())
    given = ("--profile", str(path))
    ids: dict[str, Any] = {"theirs": tiles().machine_id, "ours": milan(2, 8, 8).machine_id}
    refused(capsys, "plan", "spark", "--machine", milan_file, *given, path=path, **ids)
    refused(capsys, "topo", "--chiplets", "cores=2", *given, option="--chiplets", other="--profile")
    refused(capsys, "topo", "--profile", milan_file, path=milan_file, found="atoll/machine")
    missing = tmp_path / "none.json"
    refused(capsys, "topo", "--profile", str(missing), path=missing)


def test_what_the_system_shows_comes_before_a_named_profile(
    capsys: Capture, milan_file: str, tmp_path: Path
) -> None:
    shown = milan(2, 8, 8, memory_gib=256)
    path = tmp_path / "profile.json"
    path.write_text(profile_of(shown).model_dump_json())
    assert run(["topo", "--machine", milan_file, "--profile", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert {chiplet["source"] for chiplet in json.loads(out)["chiplets"]} == {"l3"}
    assert "the chiplets are already known (l3)" in err


def test_what_a_profile_is_called_does_not_steer_the_terminal(
    capsys: Capture, tmp_path: Path
) -> None:
    path = tmp_path / "profile.json"
    evil = sapphire_rapids().model_copy(update={"machine_title": "\x1b[31m\nnext"})
    path.write_text(evil.model_dump_json())
    assert run(["topo", "--synthetic", "Core:2 PU:1", "--profile", str(path)]) == 2
    err = capsys.readouterr().err
    assert "\x1b" not in err and err.count("\n") == 1
