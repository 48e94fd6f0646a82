"""Inside the guest, as an ordinary user: PostgreSQL up, busy, looked at, and down, for each policy.

    python -m tests.vm.inside.postgresql ANSWER POLICY...

Writes what was seen as JSON, for the host to judge. One process, because a start of Python takes
seconds in the guest: every command of Atoll runs in a fork of it. `atoll verify` looks deep into
every process, which takes seconds for each here: so it is asked once, under the first policy, while
the servers have no more than their own processes; busy ones are verified without the depths.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from atoll.host.local import LocalHost
from atoll.inspect.processes import descendants, process_table
from atoll.inspect.verify import verify
from atoll.schema.deployment import Deployment
from atoll.supervise import records
from tests.parts.deployment import left_over
from tests.parts.postgresql import ask, at_work, busy, pids
from tests.vm.inside.steps import atoll

HOST = LocalHost()


def allowed(pid: int) -> list[list[int]]:
    """The mask of every thread."""
    threads = (int(name) for name in os.listdir(f"/proc/{pid}/task"))
    return [sorted(os.sched_getaffinity(thread)) for thread in threads]


def pages_by_node(pid: int, mapping: str) -> dict[int, int]:
    """Of the mappings whose line in numa_maps names `mapping`: pages on each node."""
    found: dict[int, int] = {}
    for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        if mapping in line:
            for node, count in re.findall(r" N(\d+)=(\d+)", line):
                found[int(node)] = found.get(int(node), 0) + int(count)
    return found


def policies(pid: int) -> list[str]:
    """The memory policies of all mappings, in the kernel's words: 'bind:0'."""
    lines = Path(f"/proc/{pid}/numa_maps").read_text().splitlines()
    if not lines:
        raise ProcessLookupError(pid)  # it has given its memory back
    return sorted({line.split()[1] for line in lines})


def process(pid: int) -> dict[str, Any] | None:
    """None: it has ended, as a worker of autovacuum does after a moment."""
    try:
        return {
            "allowed": allowed(pid),
            "private": pages_by_node(pid, "heap"),
            "policies": policies(pid),
        }
    except (FileNotFoundError, ProcessLookupError):
        return None


def instances(record: Deployment) -> list[dict[str, Any]]:
    running = at_work(record)
    kinds = ask(record, "select pid, backend_type from pg_stat_activity")
    table = process_table(HOST)
    found = []
    for postmaster, query, named in zip(pids(record), running, kinds, strict=True):
        family = [postmaster, *(process.pid for process in descendants(table, postmaster))]
        kind = {postmaster: "postmaster", **dict(named)}
        found.append(
            {
                "processes": {pid: seen for pid in family if (seen := process(pid))},
                "kinds": {pid: kind[pid] for pid in family if pid in kind},
                "running": query,
                # Anonymous shared memory: shared_buffers, and what parallel queries share.
                "shared": pages_by_node(postmaster, "/dev/zero"),
            }
        )
    return found


def life(policy: str, *, command: bool) -> dict[str, Any]:
    started = time.monotonic()
    seen: dict[str, Any] = {
        "up": atoll(["up", "postgresql", "--policy", policy, "--name", policy, "-d"])
    }
    record = records.read(policy)
    if record is None or seen["up"][0] != 0:
        return seen
    seen["slots"] = [slot.model_dump(mode="json") for slot in record.plan.slots]
    try:
        if command:
            seen["verify"] = atoll(["verify", policy])
        with busy(record):
            seen["instances"] = instances(record)
            found = verify(HOST, record, deep=False)
            seen["looked at"] = [one.pid for one in found.processes]
            seen["still there"] = [
                pid for one in seen["instances"] for pid in one["processes"] if process(pid)
            ]
            seen["drift"] = [finding.model_dump(mode="json") for finding in found.drift]
            seen["down"] = atoll(["down", policy])
    finally:
        if policy in records.names():
            atoll(["down", policy])
    folders = [folder for folder in (record.run_dir, record.scratch_dir) if os.path.exists(folder)]
    segments = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    seen["left"] = [*left_over(policy), *folders, *segments, *os.listdir("/dev/shm")]
    seen["seconds"] = time.monotonic() - started
    return seen


def main(answer: str, *policies: str) -> None:
    seen = {policy: life(policy, command=policy == policies[0]) for policy in policies}
    Path(answer).write_text(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
