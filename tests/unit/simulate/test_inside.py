"""What runs in the guest, and what its results become."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from atoll.bench.results import parse_results
from atoll.schema.plan import Policy
from atoll.simulate import inside
from atoll.simulate.run import told
from tests.parts.bench import entrant, header


def test_the_first_command_makes_folders_and_finishes_without_a_board(tmp_path: Path) -> None:
    argv = inside.opening(os.geteuid(), os.getegid())
    mine = [word.replace("/run/", f"{tmp_path}/") for word in argv]
    subprocess.run(mine, check=True)
    made = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert made == ["atoll-simulate", "atoll-simulate/runtime", "atoll-simulate/state"]
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in tmp_path.rglob("*"))


def test_a_caller_keeps_its_rights() -> None:
    assert inside.as_user(["true"], 0, 0, [0]) == ["true"]
    *words, dashes, command = inside.as_user(["true"], 1000, 1001, [7, 1001])
    assert (dashes, command) == ("--", "true")
    assert {"--reuid=1000", "--regid=1001", "--groups=7,1001"} <= set(words)
    assert "--groups=1001" in inside.as_user(["true"], 1000, 1001, [])


def test_the_callers_folder_is_not_where_the_bench_looks_for_its_code(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise SystemExit('not meant')")
    argv = [*inside.bench([], [], "r")[:-4], "--help"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Usage:"), done.stderr


def test_the_guest_has_its_own_deployments_and_finds_the_tools() -> None:
    env = inside.environment({"PATH": "/usr/bin", "HOME": "/home/u", "XDG_STATE_HOME": "/s"}, "/t")
    assert env["PATH"] == "/t:/usr/bin"
    assert env["HOME"] == "/home/u"
    assert env["XDG_STATE_HOME"] != "/s"


def test_results_name_the_simulated_machine_and_the_hosts_command() -> None:
    head = header(entrant("duckdb", Policy.WIM))
    written = head.model_dump_json().encode() + b"\n" + b'{"record":"end","torn'
    found = parse_results(told(written, "2 x Milan", "atoll simulate duckdb"), where="r").header
    assert found.notes == (*head.notes, "simulated machine: 2 x Milan")
    assert found.command == "atoll simulate duckdb"
    assert told(b'{"record":"hea', "2 x Milan", "atoll") == b'{"record":"hea'
