"""The table of docs/simulated.md, First results: a shared hash join and a streaming sum.

    python -m tests.vm.first_results

Each runs on the task runtime under four approaches, in one guest with simulated caches. Counts and
times are of the second half of each run, and of one thing: a row or a line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from atoll.guest import topology
from atoll.guest.guest import Guest
from tests.vm.native import program

MACHINE = Path(__file__).parent / "small_caches.toml"
QUANTUM_CYCLES = 1000
WORKERS = 8
DECISIONS = 40
TIMEOUT_S = 300.0
WORKS = {
    "shared hash join, table of 6 MiB": "join:4096",
    "streaming sum, 64 MiB": "sum:65536",
}
APPROACHES = ("static-local", "static-distributed", "adaptive", "arcas-2025:300:2")
SOURCES = ("local_chiplet", "remote_chiplet", "remote_node", "memory_local", "memory_remote")
HEADINGS = ("own L3", "other chiplets", "other nodes", "local memory", "remote memory")


def row(work: str, approach: str, found: dict[str, Any]) -> str:
    things = found["things"]
    fills = [f"{1000 * found[source] / things:,.0f}" for source in SOURCES]
    ns = 1e9 * found["simulated_s"] * WORKERS / things
    return f"| {' | '.join([work, f'`{approach}`', str(found['spread']), *fills, f'{ns:.0f}'])} |"


def main() -> int:
    columns = ["", "approach", "last spread", *HEADINGS, "*simulated* ns"]
    print("*Simulated* lines per 1,000 things, by source:\n")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    with Guest(topology.load(str(MACHINE)), quantum=QUANTUM_CYCLES) as guest:
        for work, phase in WORKS.items():
            for approach in APPROACHES:
                argv = [program("runtime-fills-guest"), approach, str(WORKERS)]
                done = guest.run([*argv, f"{phase}:{DECISIONS}"], timeout_s=TIMEOUT_S)
                if done.returncode != 0:
                    print(done.stderr, file=sys.stderr)
                    return 1
                (end,) = (line for line in done.stdout.splitlines() if line.startswith('{"work"'))
                print(row(work, approach, json.loads(end)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
