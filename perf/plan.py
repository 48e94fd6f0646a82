"""Topology and planning beside hwloc's lstopo: a plan, an XML file, the whole of `atoll topo`.

The machine is the largest that the bars name: two packages of 128 cores in 32 chiplets, and
256 PUs as hwloc exports them. All bars are ratios of CPU time to lstopo in the same run, since
machines differ. A plan counts only if equal input gives an equal file, the XML only if it is read
as the same objects.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from atoll.engines import registry
from atoll.host.topology import read_machine
from atoll.plan import make_plan
from atoll.schema.machine import Machine
from perf.harness import (
    WrongAnswer,
    at_most,
    interleave,
    median,
    note,
    ratio,
    spawn_cpu,
    timed_cpu,
)

ROUNDS = 60
# CPU time over that of lstopo. A plan and reading the XML file are compared with a whole lstopo
# process that reads and draws the same file.
TOPO_TARGET = 10.0
PLAN_TARGET = 2.0
XML_TARGET = 4.0

LARGE = (
    "Package:2 NUMANode:1(memory=1TB) L3Cache:16(size=32MB) L2Cache:8(size=1MB) "
    "L1dCache:1(size=32kB) Core:1 PU:1"
)


def compare() -> None:
    lstopo = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    if lstopo is None:
        raise WrongAnswer("lstopo is not installed, so there is no peer")
    traits = registry.get("spark").traits
    machine = read_machine(synthetic=LARGE)
    _verify_plans(machine)
    with tempfile.TemporaryDirectory() as folder:
        xml = str(Path(folder, "large.xml"))
        subprocess.run([lstopo, "-i", LARGE, "--of", "xml", xml], check=True, capture_output=True)
        _verify_xml(xml, machine)
        atoll = str(Path(sys.executable).parent / "atoll")
        subjects: dict[str, Callable[[], float]] = {
            "plan auto": lambda: timed_cpu(lambda: make_plan(machine, traits, "auto")),
            "plan wic": lambda: timed_cpu(lambda: make_plan(machine, traits, "wic")),
            "plan -n 100": lambda: timed_cpu(lambda: make_plan(machine, traits, "auto", count=100)),
            "xml": lambda: timed_cpu(lambda: read_machine(xml)),
            "lstopo xml": lambda: spawn_cpu([lstopo, "-i", xml, "--of", "console"]),
            "topo": lambda: spawn_cpu([atoll, "topo"]),
            "lstopo": lambda: spawn_cpu([lstopo, "--of", "console"]),
        }
        with _quiet():  # topo prints its warnings in every run
            seconds = interleave(subjects, rounds=ROUNDS)
    for name, own in seconds.items():
        note(f"{name}: {median(own).scaled(1e3)} ms over {ROUNDS} runs")
    peer = seconds["lstopo xml"]
    plans = [ratio(seconds[name], peer) for name in ("plan auto", "plan wic", "plan -n 100")]
    at_most("plan-2x128-over-lstopo-cpu-ratio", max(one.value for one in plans), PLAN_TARGET)
    at_most("xml-256pu-over-lstopo-cpu-ratio", ratio(seconds["xml"], peer).value, XML_TARGET)
    topo = ratio(seconds["topo"], seconds["lstopo"])
    at_most("topo-over-lstopo-cpu-ratio", topo.value, TOPO_TARGET)


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop what this process and its children print on stderr."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _verify_plans(machine: Machine) -> None:
    """Equal input gives equal results: two machines read separately, two plans made separately."""
    again = read_machine(synthetic=LARGE)
    for engine in ("spark", "duckdb"):
        traits = registry.get(engine).traits
        for policy in ("auto", "wim", "win", "wicp", "wicp-mixed", "wic", "spmwin"):
            first = make_plan(machine, traits, policy).model_dump_json()
            if first != make_plan(again, traits, policy).model_dump_json():
                raise WrongAnswer(f"{engine} under {policy}: two plans of one machine differ")
    slots = make_plan(machine, registry.get("spark").traits, "auto").slots
    if len(slots) != 32 or {slot.cores for slot in slots} != {8}:
        raise WrongAnswer("the plan is not one instance of 8 cores per chiplet")


def _verify_xml(xml: str, machine: Machine) -> None:
    if read_machine(xml).summary != machine.summary or machine.summary.pus != 256:
        raise WrongAnswer(f"{xml}: the machine read from it differs from the one that lstopo wrote")
