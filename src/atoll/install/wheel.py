"""Fetches a wheel with this Python's pip, as the user has configured it; pip checks the hash."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from atoll.errors import DownloadFailed
from atoll.install.catalog import Wheel
from atoll.install.client import Run


def places(wheel: Wheel, keep: Path) -> tuple[Path, ...]:
    """Where the wheel may be already."""
    return tuple(sorted(keep.glob(f"{wheel.name}-{wheel.version}-*.whl")))


def fetch(wheel: Wheel, keep: Path, *, run: Run, tick: Callable[[], None]) -> Path:
    """Fetch the wheel and return its path. Raises DownloadFailed, which quotes pip."""
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
        env={
            "TMPDIR": str(keep)
        },  # the download can be watched there, and is removed with the folder
        tick=tick,
    )
    found = places(wheel, keep)
    if done.returncode != 0 or not found:
        raise DownloadFailed(f"{wanted}: {_reason(done.stdout + done.stderr)}")
    return found[0]


def _reason(output: str) -> str:
    if "No module named pip" in output:
        return "needs pip, which this Python lacks; install it with: python -m ensurepip"
    if "DO NOT MATCH THE HASHES" in output:
        return (
            "pip got a file with another checksum than the pinned one, and dropped it; "
            "pip's index has changed files: ask its operator"
        )
    broken = re.findall(r"connection broken by '\w+\(.*?: ([^:]*?)'?\)'", output)
    errors = re.findall(r"^ERROR: (.+)", output, re.MULTILINE)
    cause = ([f"no connection ({broken[-1]})"] if broken else errors[-1:]) or ["no message"]
    return (
        f"pip could not fetch it: {cause[0]}; fix the cause (network, proxy, pip's configuration) "
        "and try again"
    )
