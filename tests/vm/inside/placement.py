"""Inside the guest, as an ordinary user: engines up with thread placement, busy, looked at, down.

    python -m tests.vm.inside.placement ANSWER THREADS ENGINE:PLACEMENT...

One instance has the whole machine and THREADS threads, fewer than CPUs. Writes what was seen as
JSON, for the host to judge: every thread of every process of the instance with its name, its
process's title and its mask, read from /proc and by sched_getaffinity; and what `atoll verify`
finds. One process, because a start of Python takes seconds in the guest.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from atoll.engines import registry
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.inspect.processes import descendants, process_table
from atoll.inspect.verify import verify
from atoll.schema.deployment import Deployment
from atoll.supervise import records
from tests.parts import postgresql
from tests.parts.deployment import left_over
from tests.vm.inside.steps import atoll

HOST = LocalHost()
PATIENCE_S = 120.0
LONG = "select sum(a.range * b.range) from range(1000000) a, range(1000000) b"

Thread = dict[str, Any]


@contextmanager
def asking(record: Deployment) -> Iterator[None]:
    """A long query at every instance, until its client hangs up."""
    clients = registry.get(record.plan.engine).connect(record.endpoints, timeout_s=60)

    def ask(number: int) -> None:
        with suppress(EngineFailed):
            clients[number].execute(LONG, timeout_s=3600)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(clients))]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for client in clients:
            client.close()
        for thread in threads:
            thread.join()


BUSY: dict[str, Callable[[Deployment], AbstractContextManager[None]]] = {
    "duckdb": asking,
    "postgresql": postgresql.busy,
}


def threads_of(root: int) -> list[Thread]:
    """The threads of a process and of all its descendants."""
    found = []
    for pid in (root, *(one.pid for one in descendants(process_table(HOST), root))):
        with suppress(FileNotFoundError, ProcessLookupError):
            title = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
            for tid in map(int, os.listdir(f"/proc/{pid}/task")):
                name = Path(f"/proc/{pid}/task/{tid}/comm").read_text().strip()
                mask = sorted(os.sched_getaffinity(tid))
                found.append({"tid": tid, "name": name, "title": title, "mask": mask})
    return found


def look(record: Deployment, count: int) -> list[Thread]:
    """Once as many threads as there should be have one CPU each, or in vain."""
    (process,) = (one.id for one in record.processes if one.id is not None)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = threads_of(process.pid)
        bound = sum(len(thread["mask"]) == 1 for thread in found)
        if bound == count or time.monotonic() > deadline:
            return found
        time.sleep(0.5)


def life(engine: str, placement: str, count: int) -> dict[str, Any]:
    name = f"{engine}-{placement}"
    path = Path(f"/run/{name}.json")
    options = ("--policy", "win", "-n", "1", "--placement", placement)
    seen: dict[str, Any] = {"plan": atoll(["plan", engine, *options, "-o", str(path)])}
    plan = json.loads(path.read_text())
    (slot,) = plan["slots"]
    slot["threads"] = count
    path.write_text(json.dumps(plan))
    seen["up"] = atoll(["up", str(path), "--name", name, "-d"])
    record = records.read(name)
    if record is None or seen["up"][0] != 0:
        return seen
    seen["cpus"] = slot["cpus"]
    try:
        with BUSY[engine](record):
            seen["threads"] = look(record, count)
            found = verify(HOST, record, deep=False)
            seen["drift"] = [finding.model_dump(mode="json") for finding in found.drift]
            seen["bound"] = found.task_threads
    finally:
        seen["down"] = atoll(["down", name])
    seen["left"] = left_over(name)
    return seen


def main(answer: str, threads: str, *cases: str) -> None:
    seen = {}
    for case in cases:
        engine, placement = case.split(":")
        print(f"{time.monotonic():.0f} s: {case}", file=sys.stderr, flush=True)
        seen[case] = life(engine, placement, int(threads))
    Path(answer).write_text(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
