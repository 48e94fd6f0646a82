"""For the tests of atoll-exec: run it, be refused by it, read masks, make a machine file.

They run the launcher that is installed beside this Python; ATOLL_EXEC names another build
(with ASan the LD_PRELOAD tests fail: it wants to be first).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from atoll.schema.base import parse
from atoll.schema.machine import Machine

EXEC = os.environ.get("ATOLL_EXEC", str(Path(sys.executable).parent / "atoll-exec"))
CPUS = sorted(os.sched_getaffinity(0))
STATUS = ["grep", "-E", "^(Cpus|Mems)_allowed_list", "/proc/self/status"]


def run(
    *argv: str,
    env: Mapping[str, str] | None = None,
    preexec: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | (env or {}),
        preexec_fn=preexec,  # this process has one thread
    )


def refused(*flags: str, status: int = 125, **options: Any) -> str:
    """The one line with which atoll-exec refuses."""
    done = run(EXEC, *flags, **options)
    assert done.returncode == status, done
    assert done.stdout == ""
    assert done.stderr.startswith("atoll-exec: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def machine_file(folder: Path, chiplets: Sequence[Sequence[int]]) -> str:
    """An atoll/machine file whose chiplets have these CPUs, one core per CPU."""
    pus = sorted(pu for chiplet in chiplets for pu in chiplet)
    text = json.dumps(
        {
            "summary": {
                "packages": 1,
                "numa_nodes": 1,
                "chiplets": len(chiplets),
                "l3": 0,
                "cores": len(pus),
                "pus": len(pus),
            },
            "chiplets": [
                {
                    "index": index,
                    "pus": list(own),
                    "cores": [pus.index(pu) for pu in own],
                    "node": 0,
                    "package": 0,
                    "source": "user",
                }
                for index, own in enumerate(chiplets)
            ],
            "format": "atoll/machine",
            "version": 1,
            "origin": {"kind": "live"},
            "memory_bytes": 1 << 30,
            "smt": False,
            "packages": [{"index": 0, "os_index": 0, "pus": pus}],
            "dies": [],
            "nodes": [
                {"index": 0, "os_index": 0, "package": 0, "pus": pus, "memory_bytes": 1 << 30}
            ],
            "l3": [],
            "cores": [
                {
                    "index": index,
                    "os_index": index,
                    "pus": [pu],
                    "package": 0,
                    "die": None,
                    "l3": None,
                    "node": 0,
                }
                for index, pu in enumerate(pus)
            ],
            "caches": [],
            "allowed": {"pus": pus, "nodes": [0]},
        }
    )
    parse(Machine, text, where="text")  # the contract that the launcher reads
    path = folder / "machine.json"
    path.write_text(text)
    return str(path)


def mask_of(done: subprocess.CompletedProcess[str]) -> set[int]:
    assert done.returncode == 0, done.stderr
    cpus = set()
    for part in done.stdout.splitlines()[0].split(":")[1].strip().split(","):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus
