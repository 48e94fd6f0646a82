"""`atoll verify --rendered` on real processes that rendered scripts have started."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from atoll.cli import run
from atoll.engines.api import Installation, Layout
from atoll.engines.rendered import Target
from atoll.render.deployment import lay_out
from atoll.render.native import render_native
from atoll.render.writing import write_rendering
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import Plan
from tests.parts.deployment import until
from tests.parts.toy import ToyEngine, toy_plan

Capture = pytest.CaptureFixture[str]
# A server with a child, which has no mark of its own in its environment.
SERVER = "env -i /bin/sleep 600 & exec /bin/sleep 600"
needs_two = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="a thread can only be elsewhere with two CPUs"
)


@dataclass
class Sleepers(ToyEngine):
    """A process for each slot, without ports or clients."""

    def ports(self, plan: Plan) -> int:
        return 0

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        return Layout(
            processes=tuple(
                ProcessSpec(
                    name=f"worker-{slot.index}",
                    role=Role.WORKER,
                    slot=slot.index,
                    argv=("/bin/sh", "-c", SERVER),
                    env={},
                    stage=0,
                )
                for slot in plan.slots
            ),
            endpoints=(run_dir,),
        )


@dataclass
class Started:
    folder: Path
    servers: list[subprocess.Popen[bytes]]

    def children(self, server: int) -> list[int]:
        pid = self.servers[server].pid
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(child) for child in text.split()]

    def has_child(self, server: int) -> bool:
        return len(self.children(server)) == 1


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    folder = tmp_path / "it's"
    target = Target("sleepers", str(folder), "nobody", 9000, f"{folder}/data")
    made = lay_out(toy_plan(2), Sleepers(), Installation("1", "/"), target)
    write_rendering(render_native(made), folder)
    scripts = [folder / f"bin/worker-{slot}.sh" for slot in (0, 1)]
    found = Started(
        folder, [subprocess.Popen([script], start_new_session=True) for script in scripts]
    )
    try:
        for server in (0, 1):
            until(partial(found.has_child, server), lambda: "no child")
        yield found
    finally:
        for process in found.servers:
            os.killpg(process.pid, 9)
            process.wait()


def verified(folder: Path, capsys: Capture) -> tuple[int, dict[str, Any]]:
    status = run(["verify", "--rendered", str(folder), "--json"])
    (document,) = json.loads(capsys.readouterr().out)
    return status, document


@needs_two
def test_a_rendered_deployment_is_verified(started: Started, capsys: Capture) -> None:
    status, document = verified(started.folder, capsys)
    assert (status, document["deployment"], document["drifted"]) == (0, "sleepers", 0)
    pids = {server.pid for server in started.servers}
    children = {pid for server in (0, 1) for pid in started.children(server)}
    assert {thread["pid"] for thread in document["threads"]} == pids | children
    plan = json.loads((started.folder / "plan.json").read_text())
    for moved in (started.servers[0].pid, *started.children(0)):
        own = set(plan["slots"][0]["cpus"])
        os.sched_setaffinity(moved, os.sched_getaffinity(0) - own)
        status, document = verified(started.folder, capsys)
        assert status == 1
        assert moved in {finding["pid"] for finding in document["findings"]}
        assert {finding["process"] for finding in document["findings"]} == {"worker-0"}


@needs_two
def test_a_process_that_is_gone_is_named(started: Started, capsys: Capture) -> None:
    os.killpg(started.servers[1].pid, 9)
    started.servers[1].wait()
    assert run(["verify", "--rendered", str(started.folder)]) == 1
    text = capsys.readouterr().out
    assert "process-missing" in text and "worker-1: found not running" in text


def test_a_folder_without_processes_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert run(["verify", "--rendered", str(tmp_path)]) == 2
    target = Target("sleepers", str(tmp_path / "x"), "nobody", 9000, "/d")
    made = lay_out(toy_plan(1), Sleepers(), Installation("1", "/"), target)
    write_rendering(render_native(made), tmp_path / "x")
    assert run(["verify", "--rendered", str(tmp_path / "x")]) == 5
    assert run(["verify", "spark", "--rendered", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().out == ""
