"""`atoll measure` from the command line: what it requests, prints and keeps;
matrices from files. The measuring itself is a fake here; the machine is made up."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import atoll.host.topology
import atoll.probing.measure
from atoll.cli import run
from atoll.errors import NotPermitted
from atoll.infer import chiplets
from atoll.probing import profiles
from atoll.schema.base import parse
from atoll.schema.machine import Machine
from atoll.schema.profile import Inference, Kind, Mode, Profile
from tests.parts.faults import check_complaint
from tests.parts.machines import plain, restrict
from tests.parts.profiles import graviton, one_cpu

Capture = pytest.CaptureFixture[str]


class Measuring:
    """Stands for atoll.probing.measure.measure_machine; keeps what it was asked for."""

    def __init__(self) -> None:
        self.machine = plain(4)
        self.found = graviton(4)
        self.asked: dict[str, Any] = {}
        self.fault: BaseException | None = None

    def __call__(self, host: object, machine: Machine, **asked: Any) -> Profile:
        self.asked = asked
        for kind in asked["only"]:
            asked["progress"](kind, 0.0, "")
            asked["progress"](kind, 0.5, "half way")
        if self.fault is not None:
            raise self.fault
        return self.found.model_copy(update={"machine_id": machine.machine_id})


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Measuring:
    fake = Measuring()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(atoll.probing.measure, "measure_machine", fake)
    monkeypatch.setattr(atoll.host.topology, "read_machine", lambda *_: fake.machine)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(fake.machine.allowed.pus))
    return fake


def saved(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "state").rglob("*.json"))


def refused(capsys: Capture, *argv: str, code: int = 2, **fields: object) -> None:
    """The command ends with this exit code and one line that names the fields."""
    assert run(["measure", *argv]) == code
    out, err = capsys.readouterr()
    assert out == ""
    check_complaint(err, **fields)


# ---- Measuring


def test_one_mode_only(capsys: Capture) -> None:
    refused(capsys, "--quick", "--full", option="--quick", other="--full")


def test_all_kinds_quickly_by_default(
    capsys: Capture, measuring: Measuring, tmp_path: Path
) -> None:
    assert run(["measure"]) == 0
    out, err = capsys.readouterr()
    assert measuring.asked["mode"] is Mode.QUICK
    assert measuring.asked["only"] == tuple(Kind)
    assert measuring.asked["cpus"] == (0, 1, 2, 3)
    assert "Graviton-like" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out, "colour is for terminals"
    assert err.startswith("atoll: measuring CPUs 0-3, quick: at most ")
    assert "[1/7] core-to-core latency\n" in err and "[7/7] allocators\n" in err
    (path,) = saved(tmp_path)
    assert err.endswith(f"atoll: profile: {path}\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_options_reach_the_measuring(measuring: Measuring) -> None:
    argv = ["measure", "--full", "--only", "stream, latency", "--cpus", "0,2-3"]
    assert run(argv) == 0
    assert measuring.asked["mode"] is Mode.FULL
    assert measuring.asked["only"] == (Kind.LATENCY, Kind.STREAM), "in the order of measuring"
    assert measuring.asked["cpus"] == (0, 2, 3)


def test_json_is_the_profile(capsys: Capture, measuring: Measuring) -> None:
    assert run(["measure", "--json"]) == 0
    found = parse(Profile, capsys.readouterr().out, where="stdout")
    assert found.machine_id == measuring.machine.machine_id


def test_o_writes_the_profile_and_the_state_folder_has_it_too(
    capsys: Capture, measuring: Measuring, tmp_path: Path
) -> None:
    output = tmp_path / "profile.json"
    assert run(["measure", "-o", str(output)]) == 0
    assert capsys.readouterr().err.endswith(f"atoll: profile: {output}\n")
    (kept,) = saved(tmp_path)
    assert profiles.read(output) == profiles.read(kept)


def test_little_is_an_answer_too(capsys: Capture, measuring: Measuring) -> None:
    """One CPU of an emulated machine: it ends well, and says what is missing."""
    measuring.machine, measuring.found = plain(1), one_cpu()
    assert run(["measure"]) == 0
    out = capsys.readouterr().out
    assert "need two CPUs" in out and "EMULATED" in out


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--only", "latency,speed"], {"kind": "speed"}),
        (["--only", ","], {}),
        (["--cpus", ""], {}),
        (["--cpus", "a-b"], {"text": "'a-b'"}),
        (["--cpus", "3-9"], {"absent": "4-9"}),
        (["--cpus", "1"], {"outside": "CPUs 1"}),
    ],
)
def test_what_cannot_be_measured_is_a_usage_error(
    capsys: Capture, measuring: Measuring, argv: list[str], named: dict[str, Any]
) -> None:
    measuring.machine = restrict(plain(4), pus=(0, 2, 3))
    refused(capsys, *argv, **named)
    assert measuring.asked == {}, "found before measuring"


def test_a_file_that_cannot_be_written_is_found_before_measuring(
    capsys: Capture, measuring: Measuring, tmp_path: Path
) -> None:
    missing = tmp_path / "no" / "p.json"
    refused(capsys, "-o", str(missing), path=missing)
    refused(capsys, "-o", str(tmp_path), path=tmp_path)
    refused(capsys, "-o", "-", option="--json")
    # Not even root makes a file there.
    refused(capsys, "-o", "/proc/p.json", code=4, path="/proc/p.json")
    (tmp_path / "state").write_text("a file in the folder's place")
    refused(capsys, code=4, path=tmp_path / "state" / "atoll")
    assert measuring.asked == {}


def test_figures_are_shown_also_where_they_cannot_be_kept(
    capsys: Capture, measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Profile) -> Path:
        raise NotPermitted("the state folder cannot be written")

    monkeypatch.setattr(profiles, "save", full)
    assert run(["measure"]) == 4
    out, err = capsys.readouterr()
    assert "Graviton-like" in out
    assert err.endswith("atoll: the state folder cannot be written\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_file(
    capsys: Capture,
    measuring: Measuring,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    def interrupted(*_: object, **asked: Any) -> Profile:
        signal.raise_signal(number)
        return measuring.found

    monkeypatch.setattr(atoll.probing.measure, "measure_machine", interrupted)
    output = tmp_path / "p.json"
    assert run(["measure", "-o", str(output)]) == 130
    out, err = capsys.readouterr()
    assert out == "" and err.endswith("atoll: interrupted\n")
    assert not output.exists() and saved(tmp_path) == []


def test_ctrl_c_ends_the_real_one_and_all_of_it(tmp_path: Path) -> None:
    """The terminal signals the whole group; nothing is left of it, and no file."""
    output = tmp_path / "p.json"
    argv = [sys.executable, "-m", "atoll", "measure", "--only", "latency,nodes", "-o", str(output)]
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    with subprocess.Popen(
        argv, stderr=subprocess.PIPE, text=True, env=environ, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as command:  # fmt: skip
        assert command.stderr is not None
        said = [command.stderr.readline() for _ in range(2)]
        assert "measuring CPUs" in said[0] and said[1].startswith("[1/2]")
        probes = _children(command.pid)
        assert probes
        os.killpg(command.pid, signal.SIGINT)
        assert command.stderr.read().endswith("atoll: interrupted\n")
        assert command.wait(60) == 130
    assert not output.exists() and saved(tmp_path) == []
    assert not [pid for pid in probes if Path(f"/proc/{pid}").exists()]


def _children(parent: int) -> list[int]:
    return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat")
            if _parent(stat) == parent]  # fmt: skip


def _parent(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has just ended
        return 0


# ---- Matrices from files


@pytest.fixture
def concluded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the inference was given."""
    real: Any = chiplets.infer
    given_: list[Any] = []

    def infer(latency: Any, bandwidth: Any, pus: Any = None) -> Inference:
        given_.append((latency, bandwidth))
        found: Inference = real(latency, bandwidth, pus)
        return found

    monkeypatch.setattr(chiplets, "infer", infer)
    return given_


def matrix(near: float, far: float, groups: int = 4, size: int = 4) -> str:
    """Rows of a square CSV: near within a group, far between two."""
    count = groups * size
    return "".join(
        ",".join(
            "" if i == j else f"{near if i // size == j // size else far}" for j in range(count)
        )
        + "\n"
        for i in range(count)
    )


@pytest.fixture
def csv(tmp_path: Path) -> str:
    path = tmp_path / "latency.csv"
    path.write_text(matrix(23, 108))
    return str(path)


def test_a_matrix_is_judged_without_measuring(
    capsys: Capture, concluded: list[Any], csv: str
) -> None:
    assert run(["measure", "--latency-csv", csv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found)[:5] == ["chiplets", "packages", "smt", "levels", "confidence"]
    assert found["chiplets"] == [[4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3] for n in range(4)]
    assert found["smt"] == []
    assert 0 <= found["confidence"] <= 1
    assert [sorted(level) for level in found["levels"]] == [["groups", "median"]] * 2
    assert concluded[0][1] is None


def test_its_text_fits_a_terminal(capsys: Capture, concluded: list[Any], csv: str) -> None:
    assert run(["measure", "--latency-csv", csv]) == 0
    out = capsys.readouterr().out
    assert out.startswith("4 chiplets by latency (confidence ")
    assert "  0  CPUs 0-3\n" in out
    assert max(map(len, out.splitlines())) <= 80


def test_bandwidth_alone_and_both(
    capsys: Capture, concluded: list[Any], csv: str, tmp_path: Path
) -> None:
    other = tmp_path / "bandwidth.csv"
    other.write_text(matrix(12, 6))
    assert run(["measure", "--bandwidth-csv", str(other), "--json"]) == 0
    assert concluded[0][0] is None
    assert len(json.loads(capsys.readouterr().out)["chiplets"]) == 4
    argv = ["measure", "--latency-csv", csv, "--bandwidth-csv", str(other), "--json"]
    assert run(argv) == 0
    assert concluded[1][0] is not None and concluded[1][1] is not None
    assert len(json.loads(capsys.readouterr().out)["chiplets"]) == 4


def test_none_is_an_answer(capsys: Capture, concluded: list[Any], tmp_path: Path) -> None:
    flat = tmp_path / "flat.csv"
    flat.write_text(matrix(46, 46))
    assert run(["measure", "--latency-csv", str(flat), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["chiplets"] == [] and found["packages"] == [] and found["smt"] == []
    assert run(["measure", "--latency-csv", str(flat)]) == 0
    assert capsys.readouterr().out.startswith("no chiplets (confidence ")


@pytest.mark.parametrize(
    "argv",
    [["--quick"], ["--full"], ["--only", "latency"], ["--cpus", "0"], ["-o", "x.json"]],
)
def test_a_matrix_is_not_measured(capsys: Capture, csv: str, argv: list[str]) -> None:
    refused(capsys, "--latency-csv", csv, *argv, option="--latency-csv")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a,b\nc,d\n",
        "1,2,3\n4,5,6\n",
        ",nan\nnan,\n",
        ",-3\n-3,\n",
        ",inf\ninf,\n",
        ",1e999\n1e999,\n",
        "5\n",
    ],
)
def test_a_matrix_that_is_none_is_a_usage_error(capsys: Capture, tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.csv"
    path.write_text(text)
    refused(capsys, "--latency-csv", str(path), path=path)


def test_files_that_cannot_be_read_or_do_not_belong_together(
    capsys: Capture, csv: str, tmp_path: Path
) -> None:
    missing = tmp_path / "none.csv"
    refused(capsys, "--latency-csv", str(missing), path=missing, why="No such file or directory")
    refused(capsys, "--bandwidth-csv", str(tmp_path), path=tmp_path, why="Is a directory")
    small = tmp_path / "small.csv"
    small.write_text(matrix(12, 6, groups=2))
    both = ("--latency-csv", csv, "--bandwidth-csv", str(small))
    refused(capsys, *both, latency=csv, bandwidth=small, has="16 CPUs", other="has 8")
    refused(capsys, "--latency-csv", "-", "--bandwidth-csv", "-", file="stdin")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.binary(max_size=300))
def test_foreign_bytes_are_an_answer_or_one_line(
    capsys: Capture, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "m.csv"
    path.write_bytes(content)
    code = run(["measure", "--latency-csv", str(path), "--json"])
    out, err = capsys.readouterr()
    assert code in (0, 2)
    assert (out.count("\n"), err.count("\n")) == ((1, 0) if code == 0 else (0, 1)), err


# ---- The page


def test_every_code_of_a_profile_is_on_the_page(root: Path) -> None:
    sources = [path.read_text() for path in (root / "src/atoll/probing").glob("*.py")]
    told = r"(?:leave_out|notice|_notice)\(\s*\"([a-z-]+)\"|code = \"([a-z-]+)\""
    used = {a or b for text in sources for a, b in re.findall(told, text)}
    assert {"emulated", "no-time", "hung"} <= used
    page = (root / "docs/measure.md").read_text()
    table = set(re.findall(r"`([a-z-]+)`", page.split("## Codes")[1].split("## Exit codes")[0]))
    assert used <= table, f"docs/measure.md does not explain {sorted(used - table)}"
    for kind in Kind:
        assert f"| `{kind}` |" in page
