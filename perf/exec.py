"""`true` through atoll-exec beside `true` through numactl: what a launch costs.

Plain flags may cost 0.5 ms more than numactl, a chiplet 5 ms more. Few machines show chiplets,
so that bar has two figures: `chiplet:` from a machine file, which needs no discovery, and
`core:` of the live machine, which needs all of it, as a live `chiplet:` does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from perf.harness import (
    WrongAnswer,
    at_most,
    difference,
    interleave,
    median,
    note,
    spawn,
)

ROUNDS = 500
PLAIN_TARGET_MS = 0.5
PLACE_TARGET_MS = 5.0


def compare() -> None:
    # ATOLL_EXEC names another build than the installed one.
    launcher = os.environ.get("ATOLL_EXEC", str(Path(sys.executable).parent / "atoll-exec"))
    numactl = _tool("numactl")
    true = _tool("true")  # by its path: a long PATH would be searched in every run
    cpu = min(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        machine = _machine_file(Path(folder), cpu)
        commands = {
            "numactl": [numactl, "-C", str(cpu), "-m", "0"],
            "plain": [launcher, "-C", str(cpu), "-m", "0"],
            "chiplet": [launcher, "-m", "0", "--machine", machine, "chiplet:0", "--"],
            "core": [launcher, "-m", "0", "core:0", "--"],
        }
        for name, command in commands.items():
            _verify(name, command, {cpu} if name != "core" else None)
        subjects: dict[str, Callable[[], float]] = {
            name: _subject([*command, true]) for name, command in commands.items()
        }
        seconds = interleave(subjects, rounds=ROUNDS)
    for name, own in seconds.items():
        note(f"{name}: {median(own).scaled(1e3)} ms over {ROUNDS} runs")
    over = {
        name: difference(seconds[name], seconds["numactl"]).scaled(1e3)
        for name in ("plain", "chiplet", "core")
    }
    for name, interval in over.items():
        note(f"{name} over numactl: {interval} ms")
    at_most("exec-plain-over-numactl-ms", over["plain"].value, PLAIN_TARGET_MS)
    at_most("exec-chiplet-file-over-numactl-ms", over["chiplet"].value, PLACE_TARGET_MS)
    at_most("exec-core-live-over-numactl-ms", over["core"].value, PLACE_TARGET_MS)


def _subject(argv: list[str]) -> Callable[[], float]:
    return lambda: spawn(argv)


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise WrongAnswer(f"{name} is not installed, so there is nothing to compare with")
    return found


def _verify(name: str, command: list[str], cpus: set[int] | None) -> None:
    """The launcher must place what it starts; `cpus` None: anywhere but everywhere asked for."""
    ask = "import os; print(*os.sched_getaffinity(0))"
    done = subprocess.run(
        [*command, sys.executable, "-c", ask], capture_output=True, text=True, check=False
    )
    found = {int(cpu) for cpu in done.stdout.split()}
    if done.returncode != 0 or not found or (cpus is not None and found != cpus):
        raise WrongAnswer(f"{name}: placed on {found or 'nothing'} ({done.stderr.strip()})")


def _machine_file(folder: Path, cpu: int) -> str:
    """This machine as Atoll sees it, with its first allowed CPU as a chiplet of its own."""
    from atoll import _native

    machine = json.loads(_native.discover("live", ""))
    machine["chiplets"] = [
        {"index": 0, "pus": [cpu], "cores": [0], "node": 0, "package": 0, "source": "user"}
    ]
    path = folder / "machine.json"
    path.write_text(json.dumps(machine))
    return str(path)
