"""See to it that the engine `spark` finds a JDK 17: the machine's own, else Debian's in the cache.

Exit 0 with its path on stdout; 6 with one line if it is not there and cannot be fetched.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from atoll.engines.java import find_java
from atoll.errors import AtollError, EngineFailed
from atoll.host.local import LocalHost
from atoll.store.paths import cache_dir

PACKAGE = "openjdk-17-jre-headless"
FETCH_DEB = Path(__file__).resolve().parent / "fetch_deb"


def main() -> int:
    cache = cache_dir("jdk-17")
    try:
        java, version = find_java(LocalHost(), major=17, wanted_by="spark", cache=str(cache))
    except EngineFailed:
        fetched = subprocess.run([sys.executable, FETCH_DEB, PACKAGE, "--into", cache], check=False)
        if fetched.returncode != 0:
            return fetched.returncode
        java, version = find_java(LocalHost(), major=17, wanted_by="spark", cache=str(cache))
    print(f"JDK 17 for spark: {java} ({version})")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AtollError as fault:
        print(f"ensure_jdk17: {fault}", file=sys.stderr)
        sys.exit(fault.exit_code)
