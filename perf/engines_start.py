"""N instances of an engine by `atoll up`, beside a shell script that starts the same by hand.

The script is what a person would write: every process in the background, behind numactl with the
plan's CPUs and memory, with the arguments, the environment and the files that Atoll gives them.
Its files lie there before the clock starts, and who waits for the answers is running already;
`atoll up` pays for all of that within its time. Both are ready when every client of the engine has
counted all instances, knows that they stay in, and has its answer to `select 1`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from atoll.engines import registry
from atoll.engines.api import Client, Engine, Installation, Layout
from atoll.errors import EngineFailed
from atoll.host.api import Host
from atoll.host.caller import clean_environment
from atoll.host.local import LocalHost
from atoll.host.ports import free_ports
from atoll.host.programs import find_program
from atoll.host.reaper import become_subreaper, reap
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.schema.deployment import ProcessSpec
from atoll.schema.plan import Plan
from atoll.store.paths import cache_dir, run_dir
from atoll.supervise import records
from atoll.supervise.place import placed_argv
from atoll.supervise.stable_count import StableCount
from atoll.supervise.supervisor import lay_out
from atoll.supervise.termination import end_descendants
from perf.harness import WrongAnswer, at_most, difference, interleave, median, note

INSTANCES = 2
TARGET_S = 1.0
ROUNDS = 15
SLOW_ROUNDS = 7  # of engines that take half a minute to start
HEAPS_BYTES = 2 << 30  # of all instances: to touch the heaps of a whole machine is another matter
START_LIMIT_S = 180.0
_GRACE_S = 30.0
_LOOK_S = 0.01
_CONNECT_S = 10.0


def compare(name: str) -> None:
    """Raises EngineFailed where the engine cannot be had."""
    host = LocalHost()
    engine = registry.get(name)
    installation = engine.locate(host)
    plan = make_plan(
        read_machine(), engine.traits, "win", count=INSTANCES, heap_limit_bytes=HEAPS_BYTES
    )
    rounds = SLOW_ROUNDS if engine.traits.jvm else ROUNDS
    become_subreaper()  # of what the script leaves behind
    with tempfile.TemporaryDirectory(prefix="perf-engines-") as folder:
        path = Path(folder, "plan.json")
        path.write_text(plan.model_dump_json(), encoding="utf-8")
        seconds = interleave(
            {
                "atoll": lambda: by_atoll(path, plan, engine),
                "loop": lambda: by_loop(plan, engine, installation, host),
            },
            rounds=rounds,
            warmup=1,
        )
    for side, own in seconds.items():
        note(f"{name}, {INSTANCES} instances, {side}: {median(own)} s over {rounds} starts")
    over = difference(seconds["atoll"], seconds["loop"])
    note(f"{name}, atoll up over the loop: {over} s")
    at_most(f"engines-start-{name}-over-loop-s", over.value, TARGET_S)


# ---- by Atoll ------------------------------------------------------------------------------------


def by_atoll(plan_path: Path, plan: Plan, engine: Engine) -> float:
    """Seconds of the whole command, which returns when the engine is ready."""
    name = f"perf-{secrets.token_hex(4)}"
    program = find_program("atoll")
    if program is None:
        raise WrongAnswer("atoll is not installed; run 'make setup'")
    try:
        start = time.perf_counter()
        done = _run([program, "up", str(plan_path), "--name", name, "-d"])
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            raise WrongAnswer(f"atoll up: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        record = records.read(name)
        if record is None:
            raise WrongAnswer(f"atoll up {engine.traits.name}: it is gone")
        await_all(engine, record.endpoints, len(plan.slots))
    finally:
        if name in records.names():
            _run([program, "down", name])
        reap()
    return seconds


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False)


# ---- by hand -------------------------------------------------------------------------------------


def by_loop(plan: Plan, engine: Engine, installation: Installation, host: Host) -> float:
    """Seconds from the start of the shell until all have answered."""
    identity = f"perf-{secrets.token_hex(4)}"
    folder, scratch = str(run_dir(identity)), str(cache_dir("scratch", identity))
    try:
        layout = engine.layout(
            plan,
            installation,
            run_dir=folder,
            ports=free_ports(engine.ports(plan)),
            scratch_dir=scratch,
        )
        lay_out(
            folder,
            processes=layout.processes,
            files=layout.files,
            copies=layout.copies,
            links=layout.links,
        )
        text = script(plan, layout, folder, clean_environment())
        path = Path(folder, "start.sh")
        path.write_text(text, encoding="utf-8")
        start = time.perf_counter()
        with subprocess.Popen(["bash", str(path)], start_new_session=True) as shell:
            try:
                await_all(engine, layout.endpoints, len(plan.slots))
                return time.perf_counter() - start
            finally:
                shell.kill()  # it may wait for a port that nobody opens
    finally:
        end_descendants(host, grace_s=_GRACE_S, reap=reap)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(scratch, ignore_errors=True)


def script(plan: Plan, layout: Layout, folder: str, environment: Mapping[str, str]) -> str:
    """Starts a stage's processes at once, and the next stage's when these accept connections."""
    lines = ["#!/bin/bash"]
    stages = sorted({spec.stage for spec in layout.processes})
    for stage in stages:
        specs = [spec for spec in layout.processes if spec.stage == stage]
        lines += [_start(plan, spec, folder, environment) for spec in specs]
        if stage != stages[-1]:
            lines += [_wait(spec) for spec in specs]
    return "\n".join(line for line in lines if line) + "\n"


def _start(plan: Plan, spec: ProcessSpec, folder: str, environment: Mapping[str, str]) -> str:
    command = placed_argv("numactl", plan, spec)
    if command[1] == "--":  # no place of its own; numactl wants one
        command = command[2:]
    variables = [f"{key}={value}" for key, value in {**environment, **spec.env}.items()]
    words = shlex.join(["env", "-i", *variables, *command])
    log = shlex.quote(os.path.join(folder, f"{spec.name}.log"))
    return f"cd {shlex.quote(os.path.join(folder, spec.cwd))}; {words} </dev/null >{log} 2>&1 &"


def _wait(spec: ProcessSpec) -> str:
    if spec.ready_port is not None:
        return f"until (: </dev/tcp/127.0.0.1/{spec.ready_port}) 2>/dev/null; do sleep 0.02; done"
    if spec.ready_socket is not None:
        return f"until [ -S {shlex.quote(spec.ready_socket)} ]; do sleep 0.02; done"
    return ""


# ---- ready ---------------------------------------------------------------------------------------


def await_all(engine: Engine, endpoints: Sequence[str], instances: int) -> None:
    """Until all instances have reported and stay in, and every server answers a query, as
    `launch` asks."""
    start = time.perf_counter()
    stable = StableCount(instances)
    while True:
        clients: list[Client] = []
        try:
            clients = engine.connect(endpoints, timeout_s=_CONNECT_S)
            if stable.look(clients, timeout_s=_CONNECT_S).is_stable:
                answers = [
                    each.execute("select 1", timeout_s=START_LIMIT_S).rows for each in clients
                ]
                break
        except EngineFailed:
            stable = StableCount(instances)
        finally:
            for client in clients:
                with contextlib.suppress(EngineFailed, OSError):
                    client.close()
        if time.perf_counter() - start > START_LIMIT_S:
            raise WrongAnswer(f"{engine.traits.name}: not all instances answer")
        time.sleep(_LOOK_S)
    if answers != [[(1,)]] * len(clients):
        raise WrongAnswer(f"{engine.traits.name}: select 1 gives {answers}")
