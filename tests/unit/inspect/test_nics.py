"""Where instances listen, and the bytes of their NICs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

from atoll.host.local import LocalHost
from atoll.host.network import Route
from atoll.inspect.nics import count_bytes, listener_findings, look_at_nics, route_findings
from atoll.schema.deployment import NicCount, ProcessRecord, ProcessSpec, Role
from tests.parts.fake_host import FakeHost
from tests.parts.namespaces import need
from tests.parts.toy import toy_plan

PLAN = toy_plan(2)
ON_NETWORK = PLAN.model_copy(
    update={"slots": tuple(slot.model_copy(update={"address": "10.0.0.5"}) for slot in PLAN.slots)}
)


def host(**counts: tuple[int, int]) -> FakeHost:
    files: dict[str, str] = {}
    for name, (received, sent) in counts.items():
        folder = f"/sys/class/net/{name}/statistics"
        files |= {f"{folder}/rx_bytes": f"{received}\n", f"{folder}/tx_bytes": f"{sent}\n"}
    made = FakeHost(files)
    made.nics = {"eth0": ("10.0.0.4", "10.0.0.5"), "eth9": ("10.0.9.5",), "lo": ("127.0.0.1",)}
    return made


def test_bytes_since_the_start_by_nic() -> None:
    before = count_bytes(host(eth0=(1000, 50), lo=(7, 7), eth9=(1, 1)), ON_NETWORK)
    assert [count.name for count in before] == ["eth0", "lo"]
    found = look_at_nics(host(eth0=(1500, 60), lo=(10, 10)), ON_NETWORK, before)
    assert {nic.since for nic in found} == {"deployment"}
    assert [(n.name, n.address, n.slots, n.rx_bytes, n.tx_bytes) for n in found] == [
        ("eth0", "10.0.0.5", (0, 1), 500, 10),
        ("lo", None, (), 3, 3),
    ]


def test_an_interface_that_was_created_again_begins_at_zero() -> None:
    (found,) = look_at_nics(
        host(eth0=(5, 5)), ON_NETWORK, [NicCount(name="eth0", rx_bytes=9, tx_bytes=0)]
    )
    assert (found.rx_bytes, found.tx_bytes, found.since) == (5, 5, "interface")


def test_on_loopback_no_nic_is_read() -> None:
    assert count_bytes(host(eth0=(1, 1), lo=(1, 1)), PLAN) == ()


# ---- listeners -----------------------------------------------------------------------------------

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when uid timeout inode\n"
TAIL = "00000000:0000 {state} 00000000:00000000 00:00000000 00000000 0 0 {inode} 1\n"


def listening(address: str, port: int, inode: int, state: str = "0A") -> str:
    return f"   0: {address}:{port:04X} " + TAIL.format(state=state, inode=inode)


def worker(address: str = "10.0.0.5", port: int | None = 8081) -> ProcessRecord:
    return ProcessRecord(
        spec=ProcessSpec(
            name="worker-0",
            role=Role.WORKER,
            slot=0,
            argv=("x",),
            env={},
            stage=0,
            ready_port=port,
            ready_address=address,
        ),
        log="/l",
    )


def world(rows: str, fds: dict[int, str]) -> FakeHost:
    files = {"/proc/net/tcp": HEAD + rows, "/proc/net/tcp6": HEAD}
    for pid, inode in fds.items():
        files |= {
            f"/proc/{pid}/stat": f"{pid} (x) S 1 " + "0 " * 48,
            f"/proc/{pid}/fd/4": f"socket:[{inode}]",
        }
    return FakeHost(files)


# 10.0.0.5, 0.0.0.0 and 127.0.0.1, as a little-endian machine prints them.
@pytest.mark.parametrize(
    ("address", "found"),
    [("0500000A", []), ("00000000", ["0.0.0.0"]), ("0100007F", ["127.0.0.1"])],
)
def test_a_port_at_another_address_is_drift(address: str, found: list[str]) -> None:
    rows = listening(address, 8081, 77) + listening("0100007F", 9000, 78)
    findings = listener_findings(world(rows, {50: "77"}), worker(), [50])
    assert [(f.code, f.pid, f.expected, f.found) for f in findings] == [
        ("listens-elsewhere", 50, "port 8081 at 10.0.0.5", where) for where in found
    ]


@pytest.mark.parametrize(("beside", "found"), [("0200007F", []), ("00000000", ["0.0.0.0"])])
def test_beside_the_planned_address_only_loopback_may_be_open(
    beside: str, found: list[str]
) -> None:
    rows = listening("0100007F", 8081, 77) + listening(beside, 8081, 77)
    findings = listener_findings(world(rows, {50: "77"}), worker("127.0.0.1"), [50])
    assert [each.found for each in findings] == found


def test_another_program_at_that_port_does_not_count() -> None:
    rows = listening("0100007F", 8081, 77)
    assert listener_findings(world(rows, {60: "77"}), worker(), [50]) == []
    assert listener_findings(world(rows, {50: "77"}), worker(port=None), [50]) == []


def test_a_real_listener() -> None:
    with socket.socket() as open_one:
        open_one.bind(("127.0.0.9", 0))
        open_one.listen()
        port = open_one.getsockname()[1]
        here = LocalHost()
        assert listener_findings(here, worker("127.0.0.9", port), [os.getpid()]) == []
        (drift,) = listener_findings(here, worker("127.0.0.1", port), [os.getpid()])
        assert drift.found == "127.0.0.9"


def test_this_machines_addresses() -> None:
    found = LocalHost().addresses()
    assert "127.0.0.1" in found["lo"]
    for address in (each for own in found.values() for each in own):
        with socket.socket() as probe:
            probe.bind((address, 0))  # each is really an address of this machine


# ---- the way out ---------------------------------------------------------------------------------


def routed(**routes: str) -> FakeHost:
    """`routes`: destination, with '_' for '.' -> interface."""
    made = host()
    made.routes = {
        ("10.0.0.5", to[1:].replace("_", ".")): Route(nic, "10.0.0.0/24", "")
        for to, nic in routes.items()
    }
    return made


def test_packets_over_another_nic_are_drift() -> None:
    (found,) = route_findings(routed(_10_0_0_7="eth9"), ON_NETWORK)  # 10.0.0.4 is this machine's
    assert found.code == "leaves-elsewhere"


@pytest.mark.parametrize("routes", [{}, {"_10_0_0_7": "eth0"}])
def test_packets_over_the_own_nic_are_fine(routes: dict[str, str]) -> None:
    assert route_findings(routed(**routes), ON_NETWORK) == []
    assert route_findings(routed(**routes), PLAN) == []


def test_peers_of_connections_count_too() -> None:
    made = routed(_10_0_0_7="eth0", _10_1_0_7="eth9")
    row = listening("0500000A", 8081, 5, state="01")
    made.files["/proc/net/tcp"] = HEAD + row.replace("00000000:0000", "0700010A:0050", 1)
    (found,) = route_findings(made, ON_NETWORK)
    assert found.found == "to 10.1.0.7 they leave over eth9"


def test_two_nics_on_one_network() -> None:
    """The bytes of the second address leave over the first NIC, until the remedy is run."""
    need("unshare", "-n")
    argv = ["unshare", "-n", sys.executable, "-m", "tests.parts.two_nics"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    before, with_remedy, undone = said["looks"]
    assert [found["code"] for found in before["findings"]] == ["leaves-elsewhere"]
    assert before["took"] == {"10.0.0.10": "e0", "10.0.0.11": "e0"}
    assert with_remedy == {"findings": [], "took": {"10.0.0.10": "e0", "10.0.0.11": "e1"}}
    assert undone == before
    assert said["arrived"] == {"10.0.0.10": "e0", "10.0.0.11": "e1"}
    assert said["undone"] == ["0", "0"]


def test_a_route_that_this_machine_lacks() -> None:
    assert LocalHost().route("127.0.0.1", "127.0.0.2") is not None
    assert LocalHost().route("192.0.2.1", "192.0.2.2") is None  # not an address of ours
