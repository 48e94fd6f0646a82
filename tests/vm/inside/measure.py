"""Inside the guest: the probe works, and the kernel is asked meanwhile where it does.

    python -m tests.vm.inside.measure kernels REQUESTS
    python -m tests.vm.inside.measure command ARGUMENT...

Prints JSON. `kernels`: for each of REQUESTS (a JSON list) the probe's answer beside looks
at /proc while it worked. `command`: `atoll measure` with these arguments, and looks at all of its
probes. The host side judges. Standard library only, and nothing of Atoll's: a look costs the
guest's CPUs little, and no code is its own witness.
"""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROBE = str(Path(sys.executable).parent / "atoll-probe")
ATOLL = str(Path(sys.executable).parent / "atoll")
EVERY_S = 0.2
LOOKS_AT_A_MOVE = 20
# In smaps: the begin of a mapping whose huge pages the process asked for or forbade.
ADVISED = re.compile(r"^([0-9a-f]+)-.*\n(?:[A-Z].*\n)*?VmFlags:.* (?:nh|hg)\b", re.MULTILINE)
TRIES = 4
MIB = 1 << 20


def look(pid: int) -> dict[str, Any]:
    """Threads with their masks and CPUs, and the memory that kernels work on by node, of what is
    there. The probe advises the kernel of the huge pages of that memory, and of no other: the rest
    is where its samples and answers are, which lie anywhere and may be as large."""
    threads, memory = {}, []
    for task in _or_nothing(lambda: list(Path(f"/proc/{pid}/task").iterdir())):
        if task.name != str(pid):  # the first one only waits for the others
            threads.update(_or_nothing(lambda task=task: _thread(task)))
    advised = ADVISED.findall(_or_nothing(lambda: Path(f"/proc/{pid}/smaps").read_text()) or "")
    for line in _or_nothing(lambda: Path(f"/proc/{pid}/numa_maps").read_text().splitlines()):
        kib = re.search(r"kernelpagesize_kB=(\d+)", line)
        if kib is None or line.split()[0] not in advised:
            continue
        found = re.findall(r" N(\d+)=(\d+)", line)
        nodes = {node: int(pages) * int(kib[1]) << 10 for node, pages in found}
        if sum(nodes.values()) >= MIB:
            memory.append([line.split()[1], nodes])
    return {"threads": threads, "memory": memory}


def _thread(task: Path) -> dict[str, Any]:
    """Its mask and the CPU that it is on, by the kernel's word.

    A new mask shows before the thread has moved: one that waits moves when it next runs, one
    that runs a moment later. So where the two disagree it is looked at again, for a while.
    """
    for _ in range(LOOKS_AT_A_MOVE):
        seen = _thread_now(task)
        if all(mask == str(cpu) for mask, cpu in seen.values()):
            break
        time.sleep(EVERY_S / 4)
    return seen


def _thread_now(task: Path) -> dict[str, Any]:
    mask = re.search(r"^Cpus_allowed_list:\t(.*)", (task / "status").read_text(), re.MULTILINE)
    assert mask is not None
    stat = (task / "stat").read_text().rpartition(")")[2].split()
    if "," in mask[1] or "-" in mask[1]:
        # Its maker binds it before it begins.
        return {} if int(stat[11]) + int(stat[12]) == 0 else {task.name: [mask[1], -1]}
    return {task.name: [mask[1], int(stat[36])]}


def _or_nothing(read: Any) -> Any:
    """Threads and processes end while they are looked at."""
    try:
        return read()
    except OSError:
        return []


def kernels(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One probe for all; a request is looked at while it is answered. On a busy host it may be
    over before a look has seen all of it, or refused for lack of time: then it is made again, with
    more time."""
    child = subprocess.Popen([PROBE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None and child.stdout is not None
    found = []
    for request in requests:
        for further in range(TRIES):
            begin = time.monotonic()
            budget_ns = request["budget_ns"] * 4**further
            print(json.dumps({**request, "budget_ns": budget_ns}), file=child.stdin, flush=True)
            looks = []
            while not _readable(child.stdout):
                looks.append(look(child.pid))
            answer = json.loads(child.stdout.readline())
            took_s = time.monotonic() - begin
            gave_no_time = not answer["ok"] and answer["code"] == "cpu"
            if not gave_no_time and (not answer["ok"] or _all_seen(request, answer, looks)):
                break
        found.append({"answer": answer, "looks": looks, "took_s": took_s})
    child.stdin.close()
    status = child.wait(30)
    return [*found, {"status": status}]


def _all_seen(request: dict[str, Any], answer: dict[str, Any], looks: list[dict[str, Any]]) -> bool:
    """Whether every thread that the answer tells of was seen, and all memory at once."""
    threads = {tid for seen in looks for tid in seen["threads"]}
    most = max((sum(part.values()) for seen in looks for _, part in seen["memory"]), default=0)
    told = {str(thread["tid"]) for thread in answer["threads"]}
    return told <= threads and most >= request.get("bytes", 0)


def command(arguments: list[str]) -> dict[str, Any]:
    child = subprocess.Popen(
        [ATOLL, "measure", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    begin = time.monotonic()
    looks, probes = [], set()
    while child.poll() is None:
        time.sleep(EVERY_S)
        for pid in _children(child.pid):
            probes.add(pid)
            looks.append(look(pid))
    took_s = time.monotonic() - begin
    out, err = child.communicate()
    return {
        "status": child.returncode,
        "took_s": took_s,
        "err": err,
        "profile": json.loads(out) if child.returncode == 0 else None,
        "looks": looks,
        "probes": len(probes),
        "left": [pid for pid in probes if Path(f"/proc/{pid}").exists()],
    }


def _children(pid: int) -> list[int]:
    def read() -> list[int]:
        names = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [
            int(name) for name in names if Path(f"/proc/{name}/comm").read_text() == "atoll-probe\n"
        ]

    children: list[int] = _or_nothing(read)
    return children


def _readable(stream: Any) -> bool:
    return bool(select.select([stream], [], [], EVERY_S)[0])


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    json.dump(kernels(json.loads(rest[0])) if what == "kernels" else command(rest), sys.stdout)
