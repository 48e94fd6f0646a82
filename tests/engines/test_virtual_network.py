"""Machines with NICs of their own, on a real kernel; and a figure over them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.bench.results import read_results
from atoll.host.local import LocalHost
from atoll.host.virtual_network import Nic, VirtualMachine, network_fault, virtual_network
from atoll.schema.results import VerifyResult
from tests.parts.deployment import until

NICS = [[Nic(f"nic{k}", f"10.{77 + k}.0.{m}", 10.0 * 10**k) for k in (0, 1)] for m in (1, 2)]
SENT_BYTES = 1_000_000
LISTEN = """
import socket
server = socket.create_server(("{}", 7))
print("up", flush=True)
client, _ = server.accept()
while client.recv(65536):
    pass
"""
SEND = "import socket; socket.create_connection(('{}', 7)).sendall(bytes({}))"


@pytest.fixture(autouse=True)
def _needs_root() -> None:
    if fault := network_fault(LocalHost()):
        # Namespaces are root's; CI expects this skip only where there is no root.
        pytest.skip(f"no virtual machines are available here: {fault}")


def bytes_sent(machine: VirtualMachine) -> dict[str, int]:
    table = Path(f"/proc/{machine.pid}/net/dev").read_text().splitlines()[2:]
    rows = (row.partition(":") for row in table)
    return {name.strip(): int(counts.split()[8]) for name, _, counts in rows}


def test_bytes_go_over_the_nic_of_their_address_at_its_rate() -> None:
    with virtual_network(LocalHost(), NICS) as (one, other):
        for nic in NICS[1]:
            before = bytes_sent(one)
            listening = subprocess.Popen(
                [*other.inside, sys.executable, "-c", LISTEN.format(nic.address)],
                stdout=subprocess.PIPE,
            )
            assert listening.stdout and listening.stdout.readline() == b"up\n"
            sending = [*one.inside, sys.executable, "-c", SEND.format(nic.address, SENT_BYTES)]
            subprocess.run(sending, check=True, timeout=60)
            assert listening.wait(60) == 0
            moved = {name: now - before[name] for name, now in bytes_sent(one).items()}
            assert moved[nic.name] > SENT_BYTES
            assert sum(moved.values()) < 1.2 * SENT_BYTES
            rules = subprocess.run(
                [*one.inside, "tc", "-j", "qdisc", "show", "dev", nic.name],
                capture_output=True,
                check=True,
            )
            (rule,) = json.loads(rules.stdout)
            assert rule["kind"] == "tbf"
            assert rule["options"]["rate"] == nic.rate_mbit_s * 1e6 / 8
        pids = [one.pid, other.pid]
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_nothing_is_left_after_a_kill() -> None:
    program = (
        "import time; from tests.engines.test_virtual_network import *\n"
        "with virtual_network(LocalHost(), NICS) as machines:\n"
        "    print(*(m.pid for m in machines), flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert owner.stdout
    pids = owner.stdout.readline().split()
    assert len(pids) == 2
    owner.kill()
    owner.wait()
    until(lambda: not any(Path(f"/proc/{int(pid)}").exists() for pid in pids), lambda: pids)


@pytest.mark.installed
@pytest.mark.long
def test_a_figure_over_two_machines(tmp_path: Path) -> None:
    path = tmp_path / "fig16.jsonl"
    argv = ("experiment", "run", "numa-fig16", "--scale", "smoke", "-o", str(path))
    done = subprocess.run(
        [sys.executable, "-m", "atoll", *argv], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "emulated network" in done.stdout
    results = read_results(path)
    assert results.whole_blocks == 1
    checks = [line for line in results.lines if isinstance(line, VerifyResult)]
    assert len(checks) == len(results.header.entrants) == 5
    assert all(check.threads > 0 and check.drifted == 0 for check in checks)


@pytest.mark.installed
@pytest.mark.long
def test_a_killed_run_leaves_nothing(tmp_path: Path) -> None:
    argv = ("experiment", "run", "numa-fig16", "--scale", "smoke", "-o", str(tmp_path / "x.jsonl"))
    owner = subprocess.Popen([sys.executable, "-m", "atoll", *argv])

    def java() -> list[str]:
        argv = ["pgrep", "-f", "10.77.0.2"]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split()

    until(lambda: bool(java()), lambda: "no instance starts", patience_s=300)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    until(lambda: not java(), java, patience_s=60)
