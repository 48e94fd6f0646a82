"""Fetch Debian packages into a folder, without root and without touching the machine.

    python -m tools.fetch_deb qemu-system-x86 --suite bookworm-backports --with-depends --into DIR

`atoll.install.debian` says how, and what guards it; the choice of a suite is this tool's. The
folder appears whole or not at all.

Exit status: 0 fine (also if the folder holds these packages already), 2 usage, 6 not available,
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from atoll.errors import AtollError
from atoll.host.local import LocalHost
from atoll.install import debian_sources
from atoll.install.client import Run, runner
from atoll.install.debian import unpack_packages
from atoll.install.debian_sources import Source
from atoll.install.parts import MANIFEST
from atoll.store.once import make_once


@dataclass(frozen=True, slots=True)
class Order:
    packages: tuple[str, ...]
    suite: str = ""  # 'bookworm-backports'; '': this release's own
    depending: str = ""  # also missing dependencies whose names match this pattern


def holds(folder: Path, order: Order) -> bool:
    """Whether an earlier run put exactly these packages there."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return False
    return bool(
        manifest.get("asked") == sorted(order.packages)
        and manifest.get("suite") == order.suite
        # Folders from before this was written down are as they were asked for.
        and manifest.get("depending", order.depending) == order.depending
    )


def fetch(order: Order, into: Path, *, run: Run) -> None:
    """Make the folder `into` of the packages, or replace it. Raises AtollError."""
    report = Report()
    sources: Sequence[Source] = debian_sources.of_this_release()
    if order.suite:
        sources = with_suite(sources, order.suite, debian_sources.release_codename())

    def make(tree: Path) -> None:
        tree.mkdir()
        debs = tree.with_name("debs")
        debs.mkdir()
        unpack_packages(
            order.packages,
            tree,
            debs,
            sources=sources,
            target=("-t", order.suite) if order.suite else (),
            depending=order.depending,
            tell=report,
            run=run,
        )
        manifest = json.loads((tree / MANIFEST).read_text()) | {"suite": order.suite}
        (tree / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")

    into.parent.mkdir(parents=True, exist_ok=True)
    make_once(
        into,
        make,
        what=" ".join(order.packages),
        is_whole=lambda folder: holds(folder, order),
        waiting=lambda: report("waiting for another fetch_deb"),
    )


def with_suite(sources: Sequence[Source], suite: str, codename: str) -> list[Source]:
    """`sources` and one more suite of the same archive, with the same key."""
    if any(suite in source.suites for source in sources):
        return list(sources)
    base = [source for source in sources if codename in source.suites]
    return [*sources, *(replace(source, suites=(suite,)) for source in base[:1])]


class Report:
    """Prints a line on stderr for each step."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, doing: str, done_bytes: int = 0, total_bytes: int = 0) -> None:
        if doing != self._last:
            self._last = doing
            print(f"fetch_deb: {doing}", file=sys.stderr, flush=True)


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
        fetch(order, into, run=runner(LocalHost()))
    except AtollError as fault:
        print(f"fetch_deb: {' '.join(given.packages)}: {fault}", file=sys.stderr)
        return fault.exit_code
    except KeyboardInterrupt:
        print("fetch_deb: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
