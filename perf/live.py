"""What the live view costs: `atoll serve` and `atoll top` beside 64 instances with 5,000 threads.

The processes are real (perf/live_target.cpp): 78 or 79 threads each, of which 8 wake every 100 ms,
so that no process can be left out as idle. They are one deployment of 64 slots, whose record this
bench writes to a state folder of its own. `atoll serve` has an open stream, and its metrics are
read every 15 s; `atoll top` has a terminal of 80x24. The CPU time of each process is counted from
the end of its first look, for MEASURED_S. The answers are checked: the number of threads, and that
a thread that is moved becomes drift.
"""

from __future__ import annotations

import http.client
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import ioctl
from pathlib import Path

from atoll.engines import registry
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.schema.deployment import Deployment, ProcessRecord, ProcessSpec, Role, State
from atoll.supervise import records
from perf.harness import WrongAnswer, at_most, note

INSTANCES, THREADS, BUSY = 64, 5000, 8
MEASURED_S = 180.0
SCRAPE_S = 15.0
PATIENCE_S = 300.0
TARGET_PERCENT = 0.5  # of one core
_SOURCE = Path(__file__).with_name("live_target.cpp")


def compare() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        with _instances(Path(folder)) as pids:
            records.write(_record(pids))
            note(f"{INSTANCES} processes with {THREADS} threads, {BUSY} of each wake every 100 ms")
            at_most("live-serve-percent", _serve(Path(folder), pids), TARGET_PERCENT)
            at_most("live-top-percent", _top(), TARGET_PERCENT)


# ---- The deployment


@contextmanager
def _instances(folder: Path) -> Iterator[list[int]]:
    compiler = shutil.which("g++")
    if compiler is None:
        raise WrongAnswer("g++ is not installed, so there are no processes to watch")
    program = str(folder / "live_target")
    subprocess.run([compiler, "-std=c++20", "-O2", "-pthread", "-o", program, _SOURCE], check=True)
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(INSTANCES):
            threads = THREADS * (number + 1) // INSTANCES - THREADS * number // INSTANCES
            started.append(
                subprocess.Popen(
                    [program, str(threads), str(BUSY)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
        for process in started:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise WrongAnswer("a process did not start its threads; is there a limit on them?")
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def _record(pids: list[int]) -> Deployment:
    """This process is the supervisor; no slot has a mask, because this machine has few CPUs."""
    host = LocalHost()
    plan = make_plan(read_machine(), registry.get("spark").traits, "wim")
    slots = tuple(plan.slots[0].model_copy(update={"index": n}) for n in range(len(pids)))
    return Deployment(
        name="bench",
        id="bench",
        boot_id=records.boot_id(host),
        run_dir="",
        scratch_dir="",
        plan=plan.model_copy(update={"slots": slots}),
        state=State.READY,
        supervisor=host.identify(os.getpid()),
        keeper=None,
        processes=tuple(
            ProcessRecord(
                spec=ProcessSpec(
                    name=f"worker-{slot}", role=Role.WORKER, slot=slot, argv=(), env={}, stage=0
                ),
                id=host.identify(pid),
                log="",
            )
            for slot, pid in enumerate(pids)
        ),
        created_unix_s=time.time(),
    )


# ---- What is measured


def _serve(folder: Path, pids: list[int]) -> float:
    token_file = folder / "token"
    command = [sys.executable, "-m", "atoll", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--token-file", str(token_file)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        headers = {"Authorization": f"Bearer {token_file.read_text().strip()}"}

        def ask(path: str) -> bytes:
            request = urllib.request.Request(f"{url}{path}", headers=headers)
            answer: bytes = urllib.request.urlopen(request, timeout=PATIENCE_S).read()
            return answer

        with urllib.request.urlopen(
            urllib.request.Request(f"{url}events", headers=headers), timeout=PATIENCE_S
        ) as stream:
            views: list[bytes] = [stream.readline()]  # the first look is over
            threading.Thread(target=_follow, args=(stream, views), daemon=True).start()
            percent = _percent(process.pid, lambda: ask("metrics"))
            _verify(views, pids)
        return percent
    finally:
        process.kill()
        process.wait()


def _follow(stream: http.client.HTTPResponse, views: list[bytes]) -> None:
    with suppress(AttributeError, OSError, ValueError):  # it is closed while it is read
        views.extend(stream)


def _verify(views: list[bytes], pids: list[int]) -> None:
    def newest() -> dict[str, object]:
        line = next(one for one in reversed(list(views)) if one.startswith(b"data: "))
        (found,) = json.loads(line.removeprefix(b"data: "))["deployments"]
        assert isinstance(found, dict)
        return found

    slots = newest()["slots"]
    assert isinstance(slots, list)
    threads = sum(slot["threads"] for slot in slots)
    if (len(slots), threads) != (INSTANCES, THREADS) or newest()["drift_by_code"]:
        raise WrongAnswer(f"{len(slots)} slots, {threads} threads, {newest()['drift_by_code']}")
    ages = [
        max(slot[f"{figures}_age_s"] for slot in slots) for figures in ("masks", "runs", "memory")
    ]
    note(f"at the end, masks are at most {ages[0]} s old, runs {ages[1]} s, memory {ages[2]} s")
    os.sched_setaffinity(pids[-1], {min(os.sched_getaffinity(pids[-1]))})
    moved_s = time.monotonic()
    while not newest()["drift_by_code"]:
        if time.monotonic() - moved_s > PATIENCE_S:
            raise WrongAnswer("a thread that was moved is not reported")
        time.sleep(0.1)
    note(f"a moved thread was reported after {time.monotonic() - moved_s:.1f} s")
    os.sched_setaffinity(pids[-1], os.sched_getaffinity(0))


def _top() -> float:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "atoll", "top"],
        stdin=theirs,
        stdout=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    said = bytearray()
    threading.Thread(target=_drain, args=(ours, said), daemon=True).start()
    try:
        deadline = time.monotonic() + PATIENCE_S
        while f"{INSTANCES} slots, {THREADS} threads".encode() not in said:
            if time.monotonic() > deadline:
                raise WrongAnswer("atoll top shows other slots or threads")
            time.sleep(0.1)
        return _percent(process.pid, lambda: None)
    finally:
        process.kill()
        process.wait()


def _drain(descriptor: int, said: bytearray) -> None:
    try:
        while data := os.read(descriptor, 65536):
            said += data
    except OSError:
        return  # the terminal is gone


def _percent(pid: int, now_and_then: Callable[[], object]) -> float:
    """Of one core, that the process uses."""
    host = LocalHost()
    before_s, began_s = host.cpu_seconds(pid), time.monotonic()
    while time.monotonic() < began_s + MEASURED_S:
        time.sleep(SCRAPE_S)
        now_and_then()
    return 100 * (host.cpu_seconds(pid) - before_s) / (time.monotonic() - began_s)
