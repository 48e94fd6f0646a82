"""What `make perf-engines` starts by hand, asks, and refuses."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from atoll.engines.api import Column, Installation, Layout, QueryResult
from atoll.engines.duckdb.engine import DuckDBEngine
from atoll.plan import make_plan
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import Plan
from atoll.suites.base import Answer
from perf import engines_start
from perf.engines_client import Pair, Query, target_ms
from perf.engines_host import BACKENDS, Hosted
from perf.harness import WrongAnswer
from tests.parts.machines import plain as plain_machine


def a_plan() -> Plan:
    return make_plan(plain_machine(4, nodes=2), DuckDBEngine.traits, "win", count=2)


def a_process(name: str, stage: int, **more: object) -> ProcessSpec:
    spec = ProcessSpec(name=name, role=Role.WORKER, slot=stage, argv=("true",), env={}, stage=stage)
    return spec.model_copy(update=more)


def test_the_script_places_every_process_as_the_plan_says() -> None:
    plan = a_plan()
    spec = a_process("worker-0", 0, cwd="in here", argv=("run it", "$HOME"), env={"A": "1 2"})
    text = engines_start.script(plan, Layout((spec,)), "/run/x", {"PATH": "/bin", "A": "0"})
    assert text.splitlines()[1:] == [
        "cd '/run/x/in here'; env -i PATH=/bin 'A=1 2' numactl -C 0-3 -m 0 -- 'run it' '$HOME' "
        "</dev/null >/run/x/worker-0.log 2>&1 &"
    ]


def test_the_script_waits_for_a_stage_but_not_for_the_last() -> None:
    first, second = a_process("a", 0, ready_port=23456), a_process("b", 1, ready_port=23457)
    text = engines_start.script(a_plan(), Layout((second, first)), "/run/x", {})
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["cd", "until", "cd"]
    assert "23456" in text
    assert "23457" not in text
    waits = engines_start._wait(a_process("c", 0, ready_socket="/run/a socket"))
    assert waits == "until [ -S '/run/a socket' ]; do sleep 0.02; done"


def test_the_script_is_one_that_bash_reads(tmp_path: Path) -> None:
    spec = a_process("a", 0, ready_port=1)
    layout = Layout((spec, a_process("b", 1, slot=None)))
    path = tmp_path / "start.sh"
    path.write_text(engines_start.script(a_plan(), layout, str(tmp_path), {"X": "'\"$("}))
    assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0


def test_the_target_grows_with_the_query() -> None:
    assert target_ms(0.0) == 2.0
    assert target_ms(1000.0) == 7.0


def test_a_hosted_engine_differs_in_its_backend_alone() -> None:
    plan, installation = a_plan(), Installation("1", "/x")
    plain = DuckDBEngine().layout(plan, installation, run_dir="/run/x", ports=())
    hosted = Hosted(DuckDBEngine()).layout(plan, installation, run_dir="/run/x", ports=())
    assert replace(hosted, processes=plain.processes, files=plain.files) == plain
    for ours, theirs in zip(hosted.processes, plain.processes, strict=True):
        differ = {a for a, b in zip(ours.argv, theirs.argv, strict=True) if a != b}
        assert differ == {f"--backend={BACKENDS['duckdb']}"}
    for name, text in plain.files.items():
        more = json.loads(hosted.files[name])
        assert more.pop("own.sock") == "/run/x/own.sock"
        assert more == json.loads(text)


class Says:
    """A client that answers everything with one row."""

    def __init__(self, value: int) -> None:
        self._value = value

    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        del sql, timeout_s
        return QueryResult((Column("x", "bigint"),), [(self._value,)], 0.0)

    def instances(self, *, timeout_s: float) -> int:
        del timeout_s
        return 1

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("ours", "own", "who"), [(2, 1, "ours"), (1, 2, "its own client")])
def test_a_wrong_answer_has_no_time(ours: int, own: int, who: str) -> None:
    query = Query("one", "select 1", Answer([(1,)], ()))
    pair = Pair("duckdb", query, Says(ours), lambda sql: (0.5, [(own,)]))
    with pytest.raises(WrongAnswer, match=f"duckdb one, {who}: "):
        pair.rounds()


def test_the_own_clients_time_is_its_own() -> None:
    query = Query("one", "select 1", Answer([(1,)], ()))
    pair = Pair("duckdb", query, Says(1), lambda sql: (0.5, [(1,)]))
    assert pair.by_ours() != 0.5
    assert pair.by_own() == 0.5
