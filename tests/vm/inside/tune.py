"""Inside the guest, as root: `atoll tune` turns switches, and is killed while one is turned.

python -m tests.vm.inside.tune PROGRAM FOLDER SCENARIO      prints JSON; the host judges
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BALANCING = Path("/proc/sys/kernel/numa_balancing")
NOTE = Path("/var/lib/atoll/knobs/bench.json")
PATIENCE_S = 120.0
TUNE = (sys.executable, "-m", "atoll", "tune")


def whole(program: str, log: Path) -> dict[str, Any]:
    """A search to its end."""
    before = BALANCING.read_text()
    factors = ("--factors", "memory,autonuma,placement,smt", "--time", "6m", "--json")
    done = subprocess.run(
        [*TUNE, *factors, "--", program, str(log)], capture_output=True, text=True, check=False
    )
    return {
        "status": done.returncode,
        "found": done.stdout,
        "said": done.stderr,
        "restored": BALANCING.read_text() == before and not NOTE.exists(),
        "log": log.read_text().splitlines(),
    }


def killed(program: str, log: Path, *, with_runner: bool) -> dict[str, Any]:
    """kill -9 while AutoNUMA is off; then what the next `atoll tune` says."""
    tune = subprocess.Popen(
        [*TUNE, "--factors", "autonuma", "--time", "15m", "--", program, str(log)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + PATIENCE_S
    while BALANCING.read_text() == "1\n" and time.monotonic() < until:
        time.sleep(0.01)
    pids = [tune.pid]
    if with_runner:
        # The runner is stopped first, so that it cannot be quicker than its own end.
        runner = int(Path(f"/proc/{tune.pid}/task/{tune.pid}/children").read_text().split()[0])
        os.kill(runner, signal.SIGSTOP)
        pids.append(runner)
    turned = BALANCING.read_text()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    tune.wait()
    until = time.monotonic() + (0 if with_runner else PATIENCE_S)
    while NOTE.exists() and time.monotonic() < until:
        time.sleep(0.05)
    left = BALANCING.read_text()
    then = subprocess.run([*TUNE, "--", "false"], capture_output=True, text=True, check=False)
    return {
        "turned": turned,
        "left": left,
        "then": then.returncode,
        "after": BALANCING.read_text(),
        "note": NOTE.exists(),
        "runs": _running(program),
    }


def too_large(program: str) -> dict[str, Any]:
    done = subprocess.run(
        [*TUNE, "--factors", "smt", "--", program], capture_output=True, text=True, check=False
    )
    return {"status": done.returncode, "said": done.stderr}


def _running(program: str) -> bool:
    """Whether the program still runs, once it had time to end."""
    time.sleep(1.0)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "exe").readlink() == Path(program):
                return True
        except OSError:
            continue
    return False


def main() -> None:
    program, folder, scenario = sys.argv[1:]
    log = Path(folder) / f"{scenario}.log"
    told: dict[str, Any] = {
        "whole": lambda: whole(program, log),
        "killed": lambda: killed(program, log, with_runner=False),
        "both": lambda: killed(program, log, with_runner=True),
        "large": lambda: too_large(program),
    }[scenario]()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
