"""Topology and planning: what a plan, an XML file and `atoll topo` cost, beside hwloc's lstopo.

The machine is the largest that the bars name: two packages of 128 cores in 32 chiplets, and
256 PUs as hwloc exports them. A plan counts only if identical input gives the identical file,
the XML only if its objects are those that lstopo put in.
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
from perf.harness import WrongAnswer, at_most, interleave, median, note, spawn, timed

ROUNDS = 60
PLAN_TARGET_MS = 50.0
TOPO_TARGET_MS = 300.0
XML_TARGET_MS = 20.0

LARGE = (
    "Package:2 NUMANode:1(memory=1TB) L3Cache:16(size=32MB) L2Cache:8(size=1MB) "
    "L1dCache:1(size=32kB) Core:1 PU:1"
)


def compare() -> None:
    lstopo = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    if lstopo is None:
        raise WrongAnswer("lstopo is not installed, so there is no XML file to read")
    traits = registry.get("spark").traits
    machine = read_machine(synthetic=LARGE)
    _verify_plans(machine)
    with tempfile.TemporaryDirectory() as folder:
        xml = str(Path(folder, "large.xml"))
        subprocess.run([lstopo, "-i", LARGE, "--of", "xml", xml], check=True, capture_output=True)
        _verify_xml(xml, machine)
        atoll = str(Path(sys.executable).parent / "atoll")
        subjects: dict[str, Callable[[], float]] = {
            "plan auto": lambda: timed(lambda: make_plan(machine, traits, "auto")),
            "plan wic": lambda: timed(lambda: make_plan(machine, traits, "wic")),
            "plan -n 100": lambda: timed(lambda: make_plan(machine, traits, "auto", count=100)),
            "xml": lambda: timed(lambda: read_machine(xml)),
            "lstopo xml": lambda: spawn([lstopo, "-i", xml, "--of", "console"]),
            "topo": lambda: spawn([atoll, "topo"]),
            "lstopo": lambda: spawn([lstopo, "--of", "console"]),
        }
        with _quiet():  # topo warns of what is implausible in every run
            seconds = interleave(subjects, rounds=ROUNDS)
    ms = {name: median(own).scaled(1e3) for name, own in seconds.items()}
    for name, interval in ms.items():
        note(f"{name}: {interval} ms over {ROUNDS} runs")
    slowest = max(ms["plan auto"].value, ms["plan wic"].value, ms["plan -n 100"].value)
    at_most("plan-2x128-32chiplets-ms", slowest, PLAN_TARGET_MS)
    at_most("topo-whole-process-ms", ms["topo"].value, TOPO_TARGET_MS)
    at_most("xml-256pu-read-ms", ms["xml"].value, XML_TARGET_MS)


@contextmanager
def _quiet() -> Iterator[None]:
    """What this process and its children say on stderr is dropped."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _verify_plans(machine: Machine) -> None:
    """Identical input, identical results: two machines read apart, two plans made apart."""
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
        raise WrongAnswer(f"{xml}: is not read as the machine that it was made from")
