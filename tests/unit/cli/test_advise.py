"""What `atoll advise` prints and `atoll apply` makes of it, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from atoll.advice.system_rules import TUNERS
from atoll.cli import run
from atoll.schema.advice import Advice
from atoll.schema.base import parse
from tests.parts.faults import check_complaint

Capture = pytest.CaptureFixture[str]


def document_text(capsys: Capture, *arguments: str) -> str:
    assert run(["advise", "--json", *arguments]) == 0
    return capsys.readouterr().out


def document(capsys: Capture, *arguments: str) -> Advice:
    return parse(Advice, document_text(capsys, *arguments), where="stdout")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--workload", "allocation", "--", "/bin/ls", "-l"],
        ["--pid", str(os.getpid())],
        ["--engine", "trino"],
        ["--explain", "memory"],
        ["--explain", "bind-confined"],
    ],
)
def test_it_fits_80_columns(arguments: list[str], capsys: Capture) -> None:
    assert run(["advise", *arguments]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert max(map(len, printed.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--explain", "nothing"], {"text": "'nothing'"}),
        (["--engine", "nothing"], {"engine": "nothing"}),
        (["--pid", "1", "--", "ls"], {"option": "--pid"}),
        (["--", "no-such-program"], {"program": "no-such-program"}),
        (["--pid", "4194304"], {"pid": "4194304"}),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], named: dict[str, str], capsys: Capture
) -> None:
    assert run(["advise", *arguments]) != 0
    check_complaint(capsys.readouterr().err, **named)


def test_the_document_has_a_line_for_each_tuner(capsys: Capture) -> None:
    made = document(capsys)
    assert [line.tuner for line in made.lines] == [tuner.name for tuner in TUNERS]
    missing = {one.name for one in made.allocators if one.state == "not available"}
    assert missing == {"supermalloc", "mcmalloc", "Hoard"}


def test_a_command_under_atoll_exec_shows_its_own_state(capsys: Capture) -> None:
    """Following the advice yields it as the current value, as the kernel shows it."""
    made = document(capsys, "--", "atoll-exec", "-C", "0", "--no-thp", "--", "/bin/true")
    by_tuner = {line.tuner: line for line in made.lines}
    assert by_tuner["threads"].rule == "one-core"
    assert by_tuner["thp"].current in ("never", "not here") and by_tuner["thp"].leaves


def test_a_plan_of_another_machine_is_refused(tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(document_text(capsys)) | {"machine_id": "0" * 16}
    path = tmp_path / "advice.json"
    path.write_text(json.dumps(document))
    assert run(["apply", "--plan", str(path)]) == 2
    check_complaint(capsys.readouterr().err, path=path)


def test_what_a_plan_cannot_change_is_said(tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(document_text(capsys))
    for line in document["lines"]:
        line |= {"advised": line["current"], "supported": "yes", "obstacle": ""}
    path = tmp_path / "advice.json"
    path.write_text(json.dumps(document))
    assert run(["apply", "--plan", str(path)]) == 0
    assert capsys.readouterr() == ("", "atoll: nothing to change\n")
    document["lines"][0] |= {"advised": "x", "supported": "no", "obstacle": "no \x1b[31mnames"}
    path.write_text(json.dumps(document))
    assert run(["apply", "--plan", str(path)]) == 0
    said = "atoll: threads: x is not possible here: no \ufffd[31mnames\n"
    assert capsys.readouterr() == ("", said)


def test_a_name_of_a_process_does_not_control_the_terminal(tmp_path: Path, capsys: Capture) -> None:
    program = shutil.copy("/bin/sleep", tmp_path / "a\x1b[31m")
    with subprocess.Popen([program, "60"]) as sleeper:
        try:
            assert run(["advise", "--pid", str(sleeper.pid)]) == 0
        finally:
            sleeper.kill()
    assert "\x1b" not in capsys.readouterr().out


def test_advice_to_leave_it_applies_to_nothing(capsys: Capture) -> None:
    assert run(["apply", "sub-numa", "smt"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "sub-numa",
        "smt",
    ]
