"""Commands about deployments of real processes: ps, status, logs, restart, down, and dry runs."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from atoll.engines import registry
from atoll.errors import PortTaken, UsageError
from atoll.host.ports import free_ports
from atoll.knobs.control import Control
from atoll.schema.deployment import State, UpOptions
from atoll.store.paths import run_dir
from atoll.supervise import records
from atoll.supervise.launch import launch
from atoll.supervise.stop import down
from tests.parts.deployment import HOST, atoll, left_over, message, start
from tests.parts.toy import ToyEngine, this_machine, toy_plan


def test_ps_as_table_and_json_fits_a_terminal() -> None:
    with start("listed"):
        table = atoll("ps")
        assert table.exit_code == 0
        assert max(map(len, table.stdout.splitlines())) <= 80
        assert "listed" in table.stdout
        assert '"state": "ready"' in atoll("ps", "--json").stdout


def test_the_path_of_a_socket_stays_the_same() -> None:
    link = run_dir() / "up-lasting"
    for _ in range(2):
        with start("lasting") as running:
            assert os.path.samefile(link, running.deployment.run_dir)
        assert not os.path.lexists(link)


def test_a_dry_run_starts_nothing() -> None:
    result = atoll("up", "duckdb", "--policy", "wim", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "Files in" in result.stdout and "  duckdb-0.json\n" in result.stdout
    assert "Command lines of stage 1 of 1:\n  worker-0: " in result.stdout
    assert "duckdb" not in records.names()
    assert not (run_dir() / "ID").exists()


def test_status_and_logs_of_what_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with start("shown") as running:
        shown = json.loads(atoll("status", "shown", "--json").stdout)
        assert shown["state"] == "ready"
        assert shown["access"] == [running.access[0].model_dump(mode="json")]
        assert shown["addresses"][0].startswith("toy://127.0.0.1:")
        assert len(shown["processes"]) == 3
        assert shown["knobs_set"] == []
        with monkeypatch.context() as patched:
            patched.setattr(Control, "turned", lambda self: ["swappiness"])
            shown = json.loads(atoll("status", "shown", "--json").stdout)
        assert shown["knobs_set"] == ["swappiness"]
        assert all(each["pid"] and each["memory_bytes"] > 1 << 20 for each in shown["processes"])
        text = atoll("status", "shown").stdout
        assert (
            text.startswith("shown: ready for ") and f"connect  {running.access[0].command}" in text
        )
        assert "worker-1" in text
        log = records.logs("shown") / "worker-1.log"
        log.write_text("one\ntwo\t\x1b[31m\n")
        assert atoll("logs", "shown", "worker-1", "-n", "1").stdout == "two     \ufffd[31m\n"
        assert "worker-1    | one\n" in atoll("logs", "shown").stdout
    assert atoll("logs", "shown", "worker-1", "-f").stdout.startswith("one\n"), "kept, and it ends"
    assert message(atoll("status", "shown")) == "no deployment 'shown'; none is up"


def test_restart_keeps_the_plan_and_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ToyEngine()
    monkeypatch.setattr(registry, "get", lambda name: engine)
    monkeypatch.setattr("atoll.cli.restart.read_machine", this_machine)
    (port,) = free_ports(1)
    options = UpOptions(port=port, timeout_s=200.0)
    launch(
        toy_plan(2), engine, machine=this_machine(), host=HOST, name="again", options=options
    ).detach()
    before = records.read("again")
    try:
        result = atoll("restart", "again")
        assert result.exit_code == 0, result.output
        assert f"toy --port {port}" in result.stdout
        after = records.read("again")
        assert before and after and after.state is State.READY
        assert (after.plan, after.options, after.access) == (before.plan, options, before.access)
        assert after.id != before.id
        with pytest.raises(PortTaken, match=rf"port {port} is in use by \w+"):
            launch(
                toy_plan(2),
                engine,
                machine=this_machine(),
                host=HOST,
                name="other",
                options=UpOptions(port=port),
            )
        assert "other" not in records.names()
        with pytest.raises(UsageError, match="named 'again' is up"):  # and not the port
            launch(
                toy_plan(2),
                engine,
                machine=this_machine(),
                host=HOST,
                name="again",
                options=options,
            )
    finally:
        down("again", HOST)
    assert left_over("again") == []


def test_a_restart_that_fails_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ToyEngine()
    monkeypatch.setattr(registry, "get", lambda name: engine)
    monkeypatch.setattr("atoll.cli.restart.read_machine", this_machine)
    launch(
        toy_plan(2),
        engine,
        machine=this_machine(),
        host=HOST,
        name="frail",
        options=UpOptions(timeout_s=200.0),
    ).detach()
    try:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            engine = ToyEngine(port_of=lambda _: int(taken.getsockname()[1]))
            assert "Address already in use" in message(atoll("restart", "frail"))
        failed = records.read("frail")
        assert failed and failed.state is State.FAILED and "in use" in failed.error
        engine = ToyEngine()
        result = atoll("restart", "frail")
        assert result.exit_code == 0, result.output
    finally:
        down("frail", HOST)
    assert left_over("frail") == []


def test_what_up_did_not_start_is_not_restarted() -> None:
    with start("benched") as running:
        assert "was not started by 'atoll up'" in message(atoll("restart", "benched"))
        running.check()


def test_down_of_an_unknown_name_lists_the_known() -> None:
    with start("known"):
        assert message(atoll("down", "nobody")) == "no deployment 'nobody'; known is up"
        assert message(atoll("verify", "nobody")) == "no deployment 'nobody'; known is up"
    assert message(atoll("down", "nobody")) == "no deployment 'nobody'; none is up"


def test_down_all_ends_the_others_also_where_one_record_cannot_be_read() -> None:
    broken = records.folder("a-broken-one") / "deployment.json"
    broken.write_text("{")
    try:
        with start("whole"):
            result = atoll("down", "--all")
            assert "a-broken-one/deployment.json: not JSON" in message(result)
            assert "whole: down" in result.stdout
            assert left_over("whole") == []
    finally:
        broken.unlink()


def test_up_refuses_a_plan_of_another_version(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(toy_plan().model_dump_json().replace('"version":1', '"version":9'))
    assert "version 9" in message(atoll("up", str(path)))
