"""Inside the guest: a database on Atoll's workers works, and the kernel is asked where they are.

    python -m tests.vm.inside.duckdb watch TASK ANSWER
    python -m tests.vm.inside.duckdb work DATABASE QUERIES ANSWERS

`watch` starts `work`, gives it the orders of TASK (JSON, see tests/vm/test_duckdb.py), looks at its
threads in /proc while queries run, and writes what it saw as JSON. `work` has the database; it
keeps every answer that a query gave (pickled: the host compares). The host side judges. Where a
look says that a thread is not there yet it is repeated for a while: a thread that waits moves when
it next runs (tests/vm/inside/measure.py).
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from atoll.guest.seen import cpu_list

ATOLL = str(Path(sys.executable).parent / "atoll")
WORKERS = 8
EVERY_S = 0.05
PATIENCE_S = 60.0
MORE_LOOKS = 5  # when all are in place: they have to stay
CALLER = "caller"

Order = dict[str, Any]
Look = dict[str, tuple[str, int]]  # a worker's name, or CALLER: its mask and the CPU it is on


class Working:
    """The process that has the database, which runs the commands that it receives."""

    def __init__(self, arguments: list[str], chiplets: list[str]) -> None:
        argv = [sys.executable, "-m", __spec__.name, "work", *arguments]
        self._child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._chiplets = [cpu_list(cpus) for cpus in chiplets]
        self.pid = self._child.pid
        self.begins = self._reply()

    def told(self, order: Order) -> Any:
        self._send(order)
        return self._reply()

    def watched(self, order: Order) -> dict[str, Any]:
        """An order that takes its time: all looks meanwhile, and one when it is through.

        Work goes on until all are in place and stay there. `limit`: once they work in place, all
        threads are given these CPUs from outside.
        """
        self._send(order)
        looks: list[Look] = []
        settled, limit = 0, order.get("limit")
        deadline = time.monotonic() + PATIENCE_S
        while not self._readable():
            looks.append(look(self.pid))
            if limit and self._on(looks[-1]):
                subprocess.run(
                    ["taskset", "-a", "-c", "-p", limit, str(self.pid)],
                    stdout=subprocess.DEVNULL,
                    check=True,
                )
                looks, limit = [], ""
                continue
            settled = settled + 1 if self._on(looks[-1]) == order["wanted"] else 0
            if "run" not in order and (settled > MORE_LOOKS or time.monotonic() > deadline):
                self._send({})
                break
        reply = self._reply()
        return {"looks": looks, "reply": reply, "after": look(self.pid)}

    def end(self) -> int:
        assert self._child.stdin is not None
        self._child.stdin.close()
        return self._child.wait(PATIENCE_S)

    def _on(self, seen: Look) -> int:
        """How many chiplets they are on; 0: not all are in place."""
        masks = {mask: cpu_list(mask) for mask, _ in seen.values()}
        there = all(
            any(masks[mask] <= chiplet for chiplet in self._chiplets) and cpu in masks[mask]
            for mask, cpu in seen.values()
        )
        return len(masks) if there else 0

    def _send(self, order: Order) -> None:
        assert self._child.stdin is not None
        print(json.dumps(order), file=self._child.stdin, flush=True)

    def _reply(self) -> Any:
        assert self._child.stdout is not None
        return json.loads(self._child.stdout.readline())

    def _readable(self) -> bool:
        assert self._child.stdout is not None
        return bool(select.select([self._child.stdout], [], [], EVERY_S)[0])


def look(pid: int) -> Look:
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        if task.name == str(pid):
            name = CALLER
        elif not name.startswith("atoll-duck-"):
            continue
        mask = re.search(r"^Cpus_allowed_list:\t(.*)", (task / "status").read_text(), re.MULTILINE)
        assert mask is not None
        cpu = int((task / "stat").read_text().rpartition(")")[2].split()[36])
        found[name] = (mask[1], cpu)
    return found


def watch(task: str, answer: str) -> None:
    wanted = json.loads(Path(task).read_text())
    working = Working(
        [wanted["database"], wanted["queries"], wanted["answers"]], wanted["chiplets"]
    )
    seen = []
    for order in wanted["orders"]:
        if "run" in order:
            seen.append(working.watched(order))
        else:
            told = working.told(order)
            work = {key: order[key] for key in ("wanted", "limit", "during") if key in order}
            seen.append({"told": told, **working.watched({"work": True, **work})})
    inspected = subprocess.run(
        [ATOLL, "inspect", "--json", str(working.pid)], capture_output=True, text=True, check=False
    )
    found = {
        "begins": working.begins,
        "seen": seen,
        "inspected": [inspected.returncode, inspected.stdout, inspected.stderr],
        "status": working.end(),
    }
    Path(answer).write_text(json.dumps(found))


def said(rows: list[Any]) -> list[list[str]]:
    return [[str(value) for value in row] for row in rows]


def work(database: str, queries: str, answers: str) -> None:
    """Orders as lines of JSON on stdin; what is the state then, as a line of JSON on stdout."""
    import atoll.duckdb  # seconds, and no code is its own witness
    from atoll.duckdb.scheduler import Scheduler

    here = shutil.copy(database, "/run")  # memory
    texts = json.loads(Path(queries).read_text())
    turns = itertools.cycle(texts)
    given: dict[str, list[Any]] = {name: [] for name in texts}
    with atoll.duckdb.connect(here, policy="local", workers=WORKERS, read_only=True) as connection:
        scheduler: Scheduler = connection.atoll  # type: ignore[attr-defined]  # not in its stubs

        def say(**more: Any) -> None:
            state = {"spread": scheduler.spread, "chiplets": scheduler.chiplets, **more}
            print(json.dumps(state), flush=True)

        def ask(name: str) -> None:
            connection.execute(texts[name])
            columns = [(column[0], str(column[1]).lower()) for column in connection.description]
            result = (columns, connection.fetchall())
            if result not in given[name]:
                given[name].append(result)

        say()
        for line in sys.stdin:
            order = json.loads(line)
            if "policy" in order:
                scheduler.policy = order["policy"]
            if "spread" in order:
                scheduler.set_spread(order["spread"])
            if "run" in order:
                with connection.cursor() as cursor:  # closed, the query is over and learnt from
                    rows = cursor.execute(order["run"]).fetchall()
                records = [each for each in scheduler.queries() if each.sql == order["run"]]
                query = records[-1].model_dump()
                say(rows=said(rows), query=query)
            elif "work" in order:
                runs = 0
                rows = []
                while not select.select([sys.stdin], [], [], 0)[0]:
                    if "during" in order:
                        rows = connection.execute(order["during"]).fetchall()
                    else:
                        ask(next(turns))
                    runs += 1
                sys.stdin.readline()
                say(runs=runs, rows=said(rows))
            else:
                say()
        for name in texts:
            if not given[name]:
                ask(name)
    Path(answers).write_bytes(pickle.dumps(given))
    os.remove(here)


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    (watch if what == "watch" else work)(*arguments)
