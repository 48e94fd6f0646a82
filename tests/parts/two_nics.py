"""A machine with two NICs on one network, and a peer: run with `unshare -n python -m ...`.

    this namespace: e0 10.0.0.10, e1 10.0.0.11   ── veth ──   the peer's: a bridge, 10.0.0.9

Prints as JSON what verify finds and which NIC the bytes of each address took: before the remedy,
with it, and once it is undone. Then at which NIC bytes arrive with the knobs for ARP.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from atoll.host.local import LocalHost
from atoll.inspect.nics import route_findings
from atoll.knobs.control import Control
from atoll.knobs.journal import JournalFolder
from tests.parts.toy import toy_plan

ADDRESSES = {"10.0.0.10": "e0", "10.0.0.11": "e1"}
PEER = "10.0.0.9"
NICS = tuple(ADDRESSES.values())
ARP = [f"/proc/sys/net/ipv4/conf/all/arp_{what}" for what in ("ignore", "announce")]
SENT_BYTES = 64_000


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def connect(peer: int) -> None:
    inside = ["nsenter", "-t", str(peer), "-n", "ip"]
    subprocess.run([*inside, "link", "add", "bridge", "type", "bridge"], check=True)
    for number, address in enumerate(ADDRESSES):
        near, far = f"e{number}", f"p{number}"
        ip("link", "add", near, "type", "veth", "peer", "name", far)
        ip("link", "set", far, "netns", str(peer))
        ip("addr", "add", f"{address}/24", "dev", near)
        ip("link", "set", near, "up")
        subprocess.run([*inside, "link", "set", far, "master", "bridge", "up"], check=True)
    subprocess.run([*inside, "addr", "add", f"{PEER}/24", "dev", "bridge"], check=True)
    subprocess.run([*inside, "link", "set", "bridge", "up"], check=True)


def nic_of(send: Callable[[], object], column: int) -> str:
    """Which NIC's counter the bytes moved most: column 1 received, 9 sent."""

    def count() -> dict[str, int]:
        # /sys still shows the NICs of the namespace that mounted it.
        rows = (line.split() for line in Path("/proc/net/dev").read_text().splitlines())
        return {row[0].rstrip(":"): int(row[column]) for row in rows if row[0].rstrip(":") in NICS}

    before = count()
    send()
    moved = dict.fromkeys(NICS, 0)
    until_s = time.monotonic() + 10
    # The kernel holds packets back until the neighbour has answered.
    while max(moved.values()) < SENT_BYTES and time.monotonic() < until_s:
        moved = {nic: now - before[nic] for nic, now in count().items()}
    return max(moved, key=lambda nic: moved[nic])


def send(source: str, destination: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.bind((source, 0))
        for _ in range(SENT_BYTES // 1000):
            out.sendto(bytes(1000), (destination, 9))


def arrivals(peer: int) -> dict[str, str]:
    """The NIC at which the bytes for each address arrive."""
    inside = ["nsenter", "-t", str(peer), "-n"]

    def send_from_peer(address: str) -> Callable[[], object]:
        program = f"from tests.parts import two_nics as t; t.send(t.PEER, {address!r})"
        return lambda: subprocess.run([*inside, sys.executable, "-c", program], check=True)

    subprocess.run([*inside, "ip", "neigh", "flush", "all"], check=True)
    return {address: nic_of(send_from_peer(address), 1) for address in ADDRESSES}


def look() -> dict[str, Any]:
    plan = toy_plan(2)
    slots = zip(plan.slots, ADDRESSES, strict=True)
    plan = plan.model_copy(
        update={"slots": tuple(slot.model_copy(update={"address": own}) for slot, own in slots)}
    )
    return {
        "findings": [each.model_dump(mode="json") for each in route_findings(LocalHost(), plan)],
        "took": {own: nic_of(partial(send, own, PEER), 9) for own in ADDRESSES},
    }


def main() -> int:
    peer = subprocess.Popen(["unshare", "-n", "sleep", "60"])
    try:
        while Path(f"/proc/{peer.pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
            pass  # until it has its own
        connect(peer.pid)
        looks = [look()]
        remedies = [each["remedy"].split("; to undo: ") for each in looks[0]["findings"]]
        for commands in zip(*remedies, strict=True):
            for command in commands:
                subprocess.run(["bash", "-ec", command], check=True)
            looks.append(look())
        with tempfile.TemporaryDirectory() as folder:
            knobs = Control(LocalHost(), JournalFolder(Path(folder, "atoll", "knobs")))
            knobs.set([("arp-ignore", "1"), ("arp-announce", "2")])
            arrived = arrivals(peer.pid)
            knobs.undo([])
        left = [path.read_text().strip() for path in map(Path, ARP)]
        print(json.dumps({"looks": looks, "arrived": arrived, "undone": left}))
    finally:
        peer.kill()
        peer.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
