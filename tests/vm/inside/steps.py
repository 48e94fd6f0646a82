"""Inside the guest: one process that takes steps from the host until the guest is switched off,
because a start of Python takes seconds there.

    python -m tests.vm.inside.steps FOLDER

FOLDER/request-N.json (N from 0 on) is a list of steps, `[verb, argument]`; FOLDER/answer-N.json
has one entry for each. The host decides what is done and judges what comes back; this only
obeys. What a step turns in the machine it leaves turned: the request has the step that turns it
back. On stderr are the steps as they begin, and the traceback of one that fails, which ends it.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atoll import cli
from atoll.host.local import LocalHost
from atoll.host.topology import read_machine
from tests.vm.inside import landing

POLL_S = 0.1
CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = CGROUPS / "atoll-test"
FULL = Path("/run/atoll-test-full")
MIB = 1 << 20


def atoll(arguments: list[str]) -> Any:
    """The command line in a fork of this process, its modules loaded already."""
    importlib.import_module(f"atoll.cli.{arguments[0]}")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            status = cli.run(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return [status, out.read(), err.read()]


def plans(cases: list[landing.Case]) -> Any:
    machine = read_machine()
    return [landing.plan_of(machine, case) for case in cases]


def land(argument: dict[str, Any]) -> Any:
    machine = read_machine()
    subject, pages = argument["subject"], argument["pages"]
    return [landing.land(machine, case, subject, pages) for case in argument["cases"]]


def write(files: dict[str, str]) -> Any:
    """Set switches of the kernel; answers what they were before."""
    before = {}
    for path, text in files.items():
        before[path] = Path(path).read_text().strip()
        Path(path).write_text(text)
    return before


def read(paths: list[str]) -> Any:
    return {path: Path(path).read_text().strip() for path in paths}


def enter(limits: dict[str, str]) -> Any:
    """Move this process, and with it all that it starts, into a cgroup of its own."""
    (CGROUPS / "cgroup.subtree_control").write_text("+cpuset +memory")
    OWN_CGROUP.mkdir()
    for name, limit in limits.items():
        (OWN_CGROUP / name).write_text(limit)
    (OWN_CGROUP / "cgroup.procs").write_text(str(os.getpid()))


def leave(_: None) -> Any:
    (CGROUPS / "cgroup.procs").write_text(str(os.getpid()))
    OWN_CGROUP.rmdir()


def run(argv: list[str]) -> Any:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return [done.returncode, done.stdout, done.stderr]


def fill(wanted: dict[str, int]) -> Any:
    """Take a node's free memory away, but for some MiB, with a file in memory that is bound to it.

    The file is of small pages: of huge ones a node gives only what is not in pieces.
    """
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")  # the kernel would, for whoever wants memory
    FULL.mkdir(exist_ok=True)
    policy = f"size=100%,huge=never,mpol=bind=static:{wanted['node']}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", policy, "atoll-test", str(FULL)], check=True)
    with (FULL / "file").open("wb") as file:
        # Fewer than were free at first: what was dropped may be given back later.
        while _free_mib(wanted["node"]) > wanted["leave_mib"]:
            file.write(bytes(MIB))
    return _free_mib(wanted["node"])


def drain(_: None) -> Any:
    """Give back what `fill` took."""
    subprocess.run(["umount", str(FULL)], check=True)


def _free_mib(node: int) -> int:
    meminfo = Path(f"/sys/devices/system/node/node{node}/meminfo").read_text()
    return int(re.findall(r"MemFree: +(\d+) kB", meminfo)[0]) // 1024


def report(argv: list[str]) -> Any:
    """What the subject, started by `argv`, writes; and how it ended where it did."""
    return landing.report(argv)


def switches(_: None) -> Any:
    """What Atoll records of the machine's switches with every result."""
    from atoll.bench.fingerprint import fingerprint  # here, for what it costs to import

    found = fingerprint(LocalHost(), read_machine(), {}, data_checksum="")
    return found.model_dump(mode="json")


def left_over(_: None) -> Any:
    """Processes of a deployment: those that carry its mark."""
    marked = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if b"ATOLL_DEPLOYMENT=" in (entry / "environ").read_bytes():
                    marked.append((entry / "cmdline").read_text())
            except OSError:
                continue  # it has ended
    return marked


VERBS: dict[str, Callable[[Any], Any]] = {
    "atoll": atoll,
    "plans": plans,
    "land": land,
    "write": write,
    "read": read,
    "enter": enter,
    "leave": leave,
    "run": run,
    "fill": fill,
    "drain": drain,
    "report": report,
    "switches": switches,
    "left_over": left_over,
}


def main(folder: str) -> None:
    for number in itertools.count():
        request = Path(folder, f"request-{number}.json")
        while not request.exists():
            time.sleep(POLL_S)
        answers = []
        for verb, argument in json.loads(request.read_text()):
            print(f"{time.monotonic():.1f} {verb}", file=sys.stderr, flush=True)
            answers.append(VERBS[verb](argument))
        answer = Path(folder, f"answer-{number}.json")
        fresh = answer.with_suffix(".new")
        fresh.write_text(json.dumps(answers))
        fresh.rename(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
