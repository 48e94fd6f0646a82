"""Boot guests in a row, each with a smoke test, and count what failed.

    python -m tests.vm.boots 50

The topologies take turns and nothing is tried twice. Exit 1 if a boot or a smoke test failed.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import sys
from collections import Counter

from atoll.errors import GuestFailed
from atoll.guest import topology
from atoll.guest.guest import BootFailed, Guest

# Every CPU runs something and every node with CPUs gives it memory.
SMOKE = """
set -e
for path in /sys/devices/system/cpu/cpu[0-9]*/topology; do
    cpu=${path%/topology}
    taskset -c "${cpu##*cpu}" numactl --localalloc true
done
numactl --hardware | grep -c cpus:
"""
SMOKE_TIMEOUT_S = 300


def smoke(guest: Guest) -> str:
    """What went wrong; empty if nothing."""
    done = guest.run(["bash", "-c", SMOKE], timeout_s=SMOKE_TIMEOUT_S)
    nodes = len(guest.topology.memory_mib)
    if (done.returncode, done.stdout) != (0, f"{nodes}\n"):
        return f"exit {done.returncode}, nodes {done.stdout.strip()}: {done.stderr.strip()}"
    return ""


def main(count: int) -> int:
    outcomes: Counter[str] = Counter()
    seconds = []
    for number, name in enumerate(itertools.islice(itertools.cycle(topology.names()), count), 1):
        try:
            with contextlib.closing(Guest(topology.load(name))) as guest:
                guest.boot(tries=1)
                seconds.append(guest.boot_s)
                fault = smoke(guest)
                outcome = "smoke test failed" if fault else "ok"
                said = fault or f"{guest.boot_s:.1f} s"
        except GuestFailed as failed:
            outcome = "did not boot" if isinstance(failed, BootFailed) else "died"
            said = f"{failed}\n{failed.console}"
        outcomes[outcome] += 1
        print(f"boot {number:2} of {count}: {name:10} {outcome}: {said}", flush=True)
    counted = ", ".join(f"{outcomes[what]} {what}" for what in sorted({"ok"} | set(outcomes)))
    times = (
        f"; {statistics.median(seconds):.1f} s to boot in the median, {max(seconds):.1f} s at most"
        if seconds
        else ""
    )
    print(f"{count} boots: {counted}{times}")
    return 0 if outcomes["ok"] == count else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
