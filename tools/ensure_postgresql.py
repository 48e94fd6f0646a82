"""See to it that the engine `postgresql` finds a PostgreSQL: the machine's own, else Debian's in
the cache, where it is unpacked and not installed: installing it would start a server.

Exit 0 with its folder on stdout; 6 with one line if it is not there and cannot be fetched.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from atoll.engines.postgresql import FETCHED_MAJOR, find_postgresql
from atoll.errors import AtollError, EngineFailed
from atoll.host.local import LocalHost
from atoll.store.paths import cache_dir

PACKAGE = f"postgresql-{FETCHED_MAJOR}"
FETCH_DEB = Path(__file__).resolve().parent / "fetch_deb"


def main() -> int:
    cache = str(cache_dir(PACKAGE))
    try:
        version, home = find_postgresql(LocalHost(), cache=cache)
    except EngineFailed:
        argv = [sys.executable, str(FETCH_DEB), PACKAGE, "--into", cache, "--with-depends"]
        fetched = subprocess.run(argv, check=False)
        if fetched.returncode != 0:
            return fetched.returncode
        version, home = find_postgresql(LocalHost(), cache=cache)
    print(f"PostgreSQL for postgresql: {home} ({version})")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AtollError as fault:
        print(f"ensure_postgresql: {fault}", file=sys.stderr)
        sys.exit(fault.exit_code)
