"""Fetch Debian packages into a folder, without root and without touching the machine.

    python -m tools.fetch_deb qemu-system-x86 --suite bookworm-backports --with-depends --into DIR

`atoll.install.debian` says how, and what guards it. The folder appears whole or not at all.

Exit status: 0 fine (also if the folder holds these packages already), 2 usage, 6 not available,
130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from atoll.errors import AtollError
from atoll.host.local import LocalHost
from atoll.install.client import runner
from atoll.install.debian import Order, fetch, holds
from atoll.install.parts import MANIFEST
from atoll.install.progress import Lines


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="fetch_deb",
        description="Fetch Debian packages into a folder from apt's signed index, without root.",
    )
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--into", required=True, type=Path, metavar="DIR", help="made or replaced")
    parser.add_argument("--suite", default="", help="for example bookworm-backports")
    parser.add_argument(
        "--with-depends",
        dest="depending",
        action="store_const",
        const="*",
        default="",
        help="also fetch the dependencies that this machine lacks",
    )
    parser.add_argument(
        "--with-depends-like",
        dest="depending",
        metavar="PATTERN",
        help="only those that match PATTERN; linux-image-* follows the kernel's meta package",
    )
    given = parser.parse_args(argv)
    order = Order(tuple(given.packages), given.suite, given.depending)
    into = Path(os.path.abspath(given.into))
    if holds(into, order):
        return 0
    if into.exists() and any(into.iterdir()) and not (into / MANIFEST).is_file():
        print(
            f"fetch_deb: {into}: exists and this tool did not make it; remove it", file=sys.stderr
        )
        return 2
    try:
        fetch(order, into, tell=Lines("fetch_deb"), run=runner(LocalHost()))
    except AtollError as fault:
        print(f"fetch_deb: {' '.join(given.packages)}: {fault}", file=sys.stderr)
        return fault.exit_code
    except KeyboardInterrupt:
        print("fetch_deb: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
