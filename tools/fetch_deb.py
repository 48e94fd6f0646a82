"""Fetch Debian packages into a folder, without root and without touching the host.

    python -m tools.fetch_deb qemu-system-x86 --suite bookworm-backports --with-depends --into DIR

How, and what guards it: `atoll.install.debian`. The folder appears whole or not at all.

Exit 0 fine (also when the folder holds these packages already), 2 usage, 6 not to be had,
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from atoll.errors import AtollError, DownloadFailed
from atoll.install import client, placing
from atoll.install.client import Run
from atoll.install.debian import Wish, unpack_packages
from atoll.install.parts import MANIFEST
from atoll.store.paths import cache_dir


def holds(folder: Path, wish: Wish) -> bool:
    """Whether an earlier run put just what is wished there."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return False
    return bool(
        manifest.get("asked") == sorted(wish.packages)
        and manifest.get("suite") == wish.suite
        # Folders of before this was written down are as they were asked for.
        and manifest.get("depending", wish.depending) == wish.depending
    )


def fetch(wish: Wish, into: Path, *, run: Run) -> None:
    """Put the packages there, in place of what was there. Raises DownloadFailed."""
    try:
        said = Said()
        into.parent.mkdir(parents=True, exist_ok=True)
        with (
            # One at a time: so what a killed one has left beside `into` is nobody's.
            placing.alone(
                cache_dir("fetch_deb"), lambda: said("waiting for another"), clearing=into.parent
            ),
            placing.staging(into.parent) as made,
        ):
            tree, debs = made / "tree", made / "debs"
            tree.mkdir()
            debs.mkdir()
            unpack_packages(wish, tree, debs, tell=said, run=run)
            placing.put(tree, into, old=made / "old")
    except OSError as fault:
        raise DownloadFailed(f"{into}: {fault.strerror or fault}; nothing was changed") from None


class Said:
    """A line on stderr for each step."""

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
    parser.add_argument("--suite", default="", help="take them from here: bookworm-backports")
    parser.add_argument(
        "--with-depends",
        dest="depending",
        action="store_const",
        const="*",
        default="",
        help="also what they need and this machine lacks",
    )
    parser.add_argument(
        "--with-depends-like",
        dest="depending",
        metavar="PATTERN",
        help="of that only names like PATTERN; linux-image-* follows the kernel's meta package",
    )
    given = parser.parse_args(argv)
    wish = Wish(tuple(given.packages), given.suite, given.depending)
    into = Path(os.path.abspath(given.into))
    if holds(into, wish):
        return 0
    if into.exists() and any(into.iterdir()) and not (into / MANIFEST).is_file():
        print(f"fetch_deb: {into}: exists and is not of this tool; remove it", file=sys.stderr)
        return 2
    try:
        fetch(wish, into, run=client.run)
    except AtollError as fault:
        print(f"fetch_deb: {' '.join(given.packages)}: {fault}", file=sys.stderr)
        return fault.exit_code
    except KeyboardInterrupt:
        print("fetch_deb: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
