"""UseNUMA on a machine with two nodes: where a JVM keeps it and where it turns it off.

Asked with -XX:+UseNUMA all of them. The JVM goes by its memory nodes alone: one is too few, also
if its CPUs have another; two are enough, also if its CPUs have one of them.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from atoll.engines.java import find_java
from atoll.errors import EngineFailed
from atoll.guest.guest import Guest
from atoll.host.local import LocalHost
from atoll.install import installed
from tests.parts.jvm_program import write_program

# Quick to start where every instruction is emulated.
QUICK = ("-Xint", "-Xshare:auto", "-Xmx64m", "-XX:+UseParallelGC")
BINDINGS = {
    "apart": ("--cpunodebind=0", "--membind=1"),
    "one node": ("--cpunodebind=1", "--membind=1"),
    "wider memory": ("--cpunodebind=0", "--membind=0,1"),
    "all": ("--cpunodebind=0,1", "--membind=0,1"),
}


@pytest.mark.long
@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
def test_use_numa_stays_on_only_with_several_memory_nodes(guest: Guest) -> None:
    try:
        java, _ = find_java(
            LocalHost(), major=17, wanted_by="spark", engine="spark", part=installed("openjdk-17")
        )
    except EngineFailed as fault:
        pytest.skip(str(fault))
    program = [java, *QUICK, "-XX:+UseNUMA", *write_program(guest.share)]
    request, answer = guest.share / "jvms.json", guest.share / "looks.json"
    request.write_text(json.dumps([["numactl", *how, *program] for how in BINDINGS.values()]))
    done = guest.run(
        [sys.executable, "-m", "tests.vm.inside.jvms", str(request), str(answer)], timeout_s=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    looks = dict(zip(BINDINGS, json.loads(answer.read_text()), strict=True))
    assert {name: look["unknown"] for name, look in looks.items() if look["unknown"]} == {}
    jvms = {name: look["jvm"] for name, look in looks.items()}
    assert all(jvm["use_numa_asked"] for jvm in jvms.values())
    assert {name: jvm["use_numa"] for name, jvm in jvms.items()} == {
        "apart": False,
        "one node": False,
        "wider memory": True,
        "all": True,
    }
    assert [jvm["processors"] for jvm in jvms.values()] == [8, 8, 8, 16]

    assert "its CPUs are on 0" in numa_finding(looks["apart"])["cause"]
    assert "node 1 alone" in numa_finding(looks["one node"])["cause"]
    for name in ("wider memory", "all"):
        assert numa_finding(looks[name]) == {}


def numa_finding(look: dict[str, Any]) -> dict[str, Any]:
    return next((each for each in look["findings"] if each["code"] == "jvm-numa-off"), {})
