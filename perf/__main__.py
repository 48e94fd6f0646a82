"""`python -m perf` runs every comparison, `python -m perf exec plan` the named ones.

A comparison is a module of this package with a function `compare() -> None`. The exit status
says whether the answers were right, not whether the bars were met: 0 also when a bar is short,
1 when an answer was wrong, 2 when the comparison does not exist.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import perf
from perf.harness import WrongAnswer, note, wait_until_idle

_NO_COMPARISON = {
    "datasets",
    "deployed",
    "harness",
    "duckdb_pairs",
    "duckdb_side",
    "engines_client",
    "engines_data",
    "engines_host",
    "engines_start",
    "probe_peers",
    "runtime_runs",
    "suites_data",
    "suites_pass",
    "suites_report",
    "tuning_client",
    "tuning_peers",
    "workloads_peers",
}


def main(names: list[str]) -> int:
    found = sorted(
        module.name
        for module in pkgutil.iter_modules(perf.__path__)
        if not module.name.startswith("_") and module.name not in _NO_COMPARISON
    )
    for name in names:
        if name not in found:
            print(f"perf: no comparison {name!r}; there are: {', '.join(found)}", file=sys.stderr)
            return 2
    wrong = False
    for name in names or found:
        note(f"== {name}")
        wait_until_idle()
        try:
            importlib.import_module(f"perf.{name}").compare()
        except WrongAnswer as fault:
            print(f"perf: {name}: wrong answer: {fault}", file=sys.stderr)
            wrong = True
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
