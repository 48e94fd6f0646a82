"""Fetching a wheel with this Python's own pip, as the user has set it up; it checks the hash."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from atoll.errors import DownloadFailed
from atoll.install.catalog import Wheel
from atoll.install.client import Run


def places(wheel: Wheel, keep: Path) -> tuple[Path, ...]:
    """Where the wheel may lie already."""
    return tuple(sorted(keep.glob(f"{wheel.name}-{wheel.version}-*.whl")))


def fetch(wheel: Wheel, keep: Path, *, run: Run, tick: Callable[[], None]) -> Path:
    """The wheel's file. Raises DownloadFailed saying what pip said."""
    wanted = f"{wheel.name}=={wheel.version}"
    requirements = keep / "requirements.txt"
    requirements.write_text(f"{wanted} --hash=sha256:{wheel.hash_here()}\n")
    done = run(
        [
            *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"),
            *("--require-hashes", "--no-input", "--disable-pip-version-check"),
            *("--progress-bar=off", "--dest", str(keep), "--requirement", str(requirements)),
        ],
        cwd=keep,
        env={"TMPDIR": str(keep)},  # half of it can be watched there, and goes with the folder
        tick=tick,
    )
    found = places(wheel, keep)
    if done.returncode != 0 or not found:
        raise DownloadFailed(f"{wanted}: {_reason(done.stdout + done.stderr)}")
    return found[0]


def _reason(said: str) -> str:
    if "No module named pip" in said:
        return "is fetched by pip, which this Python lacks; get it with: python -m ensurepip"
    if "DO NOT MATCH THE HASHES" in said:
        return (
            "pip got a file with another checksum than the pinned one, and dropped it; "
            "the index that pip asks has changed files: ask whoever runs it"
        )
    broken = re.findall(r"connection broken by '\w+\(.*?: ([^:]*?)'?\)'", said)
    errors = re.findall(r"^ERROR: (.+)", said, re.MULTILINE)
    cause = ([f"no connection ({broken[-1]})"] if broken else errors[-1:]) or ["it said nothing"]
    return (
        f"pip could not fetch it: {cause[0]}; mend that (network, proxy, pip's configuration) and "
        "try again"
    )
