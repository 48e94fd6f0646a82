"""DuckDB on Atoll's workers under everything at once, for as long as is asked.

    python -m tests.parts.duckdb_stress SECONDS SEED [--native FOLDER]

Six threads run mixed queries on databases that are opened and closed in any order, on made-up
places of eight chiplets, while others send interrupts, change policies and spreads, and fork. Every
query is accounted for (duckdb_stress_jobs). It goes in rounds; after each one everything but one
database is closed and this process is weighed. `--native`: the folder of another build of
atoll._duckdb, one under AddressSanitizer. The exit status is 0 if all was well.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib.util
import sys
from pathlib import Path

HANG_S = 240.0  # a query that takes longer is lost; those that are run take under 10 s


def take_native(folder: Path) -> None:
    """Makes `import atoll._duckdb` find that one, and its extension beside it."""
    (library,) = folder.glob("_duckdb.*.so")
    spec = importlib.util.spec_from_file_location("atoll._duckdb", library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    importlib.import_module("atoll").__dict__["_duckdb"] = module


def main() -> int:
    parser = argparse.ArgumentParser(description="DuckDB on Atoll's workers, under stress.")
    parser.add_argument("seconds", type=float)
    parser.add_argument("seed", type=int)
    parser.add_argument("--native", type=Path)
    given = parser.parse_args()
    faulthandler.enable()
    if given.native is not None:
        take_native(given.native)
    # Only now: it imports atoll._duckdb.
    from tests.parts.duckdb_stress_run import run

    return run(given.seconds, given.seed, HANG_S)


if __name__ == "__main__":
    sys.exit(main())
