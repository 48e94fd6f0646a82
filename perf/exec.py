"""`true` through atoll-exec beside `true` through numactl: what a launch costs.

Plain flags may cost 0.5 ms more than numactl, a place 5 ms more: `core:` of the live machine, which
needs all of the topology, `chiplet:` from a machine file, and `chiplet:` of a live machine with 256
CPUs. Few machines have that many, so its files are written and mounted over /sys/devices/system in
a namespace of our own.
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

from atoll.schema.cpulist import format_cpulist
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
    launcher, numactl = _launcher(), _tool("numactl")
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
    # In memory, as sysfs is.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        _write_large(Path(folder))
        unshare = [_tool("unshare"), "--map-root-user", "--mount"]
        subprocess.run([*unshare, sys.executable, "-m", "perf.exec", folder], check=True)


def compare_large(system: str) -> None:
    """The live places of the machine of `_write_large`, whose files are in `system`."""
    subprocess.run([_tool("mount"), "--bind", system, "/sys/devices/system"], check=True)
    launcher, numactl, true = _launcher(), _tool("numactl"), _tool("true")
    commands = {
        "numactl": [numactl, "-m", "0"],
        # The machine has CPUs that are not here: `xall` leaves them out.
        "chiplet": [launcher, "-m", "0", "chiplet:0", "xall", "--"],
        "core": [launcher, "-m", "0", "core:0", "xall", "--"],
    }
    _verify("chiplet", commands["chiplet"], set(_chiplet(0)) & os.sched_getaffinity(0))
    subjects = {name: _subject([*command, true]) for name, command in commands.items()}
    seconds = interleave(subjects, rounds=ROUNDS)
    for name, own in seconds.items():
        note(f"256 CPUs, {name}: {median(own).scaled(1e3)} ms over {ROUNDS} runs")
    over = difference(seconds["chiplet"], seconds["numactl"]).scaled(1e3)
    note(f"256 CPUs, chiplet over numactl: {over} ms")
    at_most("exec-chiplet-256-over-numactl-ms", over.value, PLACE_TARGET_MS)


def _launcher() -> str:
    # ATOLL_EXEC names another build than the installed one.
    return os.environ.get("ATOLL_EXEC", str(Path(sys.executable).parent / "atoll-exec"))


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


# ---- A machine with 256 CPUs -----------------------------------------------------------------
# Two packages, each a node of 8 chiplets of 8 cores. The second threads come after all first ones.


def _chiplet(index: int) -> list[int]:
    firsts = range(8 * index, 8 * index + 8)
    return [*firsts, *(cpu + 128 for cpu in firsts)]


def _package(index: int) -> list[int]:
    return sorted(cpu for chiplet in range(8 * index, 8 * index + 8) for cpu in _chiplet(chiplet))


def _write_large(system: Path) -> None:
    """/sys/devices/system of that machine, with the files that hwloc reads."""
    for cpu in range(256):
        core = cpu % 128
        package, siblings = core // 64, [core, core + 128]
        folder = system / f"cpu/cpu{cpu}"
        sets = {
            "core_cpus": siblings,
            "cluster_cpus": siblings,
            "die_cpus": _package(package),
            "package_cpus": _package(package),
        }
        for name, cpus in sets.items():
            _write_set(folder / "topology", name, f"{name}_list", cpus)
        _write(
            folder / "topology",
            core_id=core,
            cluster_id=core,
            die_id=0,
            physical_package_id=package,
        )
        caches = (
            (1, "Data", 32, siblings),
            (1, "Instruction", 32, siblings),
            (2, "Unified", 1024, siblings),
            (3, "Unified", 32768, _chiplet(core // 8)),
        )
        for index, (level, kind, kib, cpus) in enumerate(caches):
            cache = folder / f"cache/index{index}"
            _write_set(cache, "shared_cpu_map", "shared_cpu_list", cpus)
            _write(
                cache,
                level=level,
                type=kind,
                size=f"{kib}K",
                id=cpus[0],
                coherency_line_size=64,
                number_of_sets=kib,
                physical_line_partition=1,
                ways_of_associativity=16,
            )
    _write(system / "cpu", online="0-255", present="0-255", possible="0-255")
    _write(system / "node", online="0-1", possible="0-1", has_cpu="0-1", has_memory="0-1")
    for node in range(2):
        folder = system / f"node/node{node}"
        _write_set(folder, "cpumap", "cpulist", _package(node))
        _write(folder, distance="32 10" if node else "10 32")
        memory = (f"Node {node} {name}: 268435456 kB" for name in ("MemTotal", "MemFree"))
        _write(folder, meminfo="\n".join(memory))


def _write_set(folder: Path, mask: str, cpulist: str, cpus: list[int]) -> None:
    digits = f"{sum(1 << cpu for cpu in cpus):064x}"
    words = ",".join(digits[at : at + 8] for at in range(0, 64, 8))
    _write(folder, **{mask: words, cpulist: format_cpulist(cpus)})


def _write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(f"{content}\n")


if __name__ == "__main__":
    compare_large(sys.argv[1])
