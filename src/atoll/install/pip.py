"""Fetches a wheel or a source distribution with this Python's pip, as the user has configured it.

pip checks the hash. It runs a source distribution's own `setup.py` for its name and version, after
that check, with the newest setuptools of the index.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from atoll.errors import DownloadFailed
from atoll.install.catalog import Sdist, Wheel
from atoll.install.client import Run


def places(source: Wheel | Sdist, keep: Path) -> tuple[Path, ...]:
    """Where the file may be already."""
    return tuple(sorted(keep.glob(source.file)))


def fetch(
    source: Wheel | Sdist, pinned: str, keep: Path, *, run: Run, tick: Callable[[], None]
) -> Path:
    """Fetch the file and return its path. `pinned`: its SHA-256. Raises DownloadFailed, which
    quotes pip."""
    wanted = f"{source.name}=={source.version}"
    form = f"--no-binary={source.name}" if isinstance(source, Sdist) else "--only-binary=:all:"
    requirements = keep / "requirements.txt"
    requirements.write_text(f"{wanted} --hash=sha256:{pinned}\n")
    done = run(
        [
            *(sys.executable, "-m", "pip", "download", "--no-deps", form),
            *("--require-hashes", "--no-input", "--disable-pip-version-check"),
            *("--progress-bar=off", "--dest", str(keep), "--requirement", str(requirements)),
        ],
        cwd=keep,
        env={
            "TMPDIR": str(keep)
        },  # the download can be watched there, and is removed with the folder
        tick=tick,
    )
    found = places(source, keep)
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
