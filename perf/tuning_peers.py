"""Polars and DataFusion, the peers of perf.tuning beside DuckDB: how they are had and asked.

They are put into a virtual environment below build/perf, so that nothing else of ours sees them.
Where they cannot be had, the comparison goes on without them and says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from types import TracebackType

from perf.harness import WrongAnswer, note

NAMES = ("polars", "datafusion")
_PACKAGES = ("polars==2.1.0", "datafusion==55.0.0", "pyarrow==26.0.1", "numpy==2.4.6")
_ROOT = Path(__file__).resolve().parent.parent
_FOLDER = _ROOT / "build/perf/tuning-peers"
_CLIENT = _ROOT / "perf/tuning_client.py"


def peers_python() -> str | None:
    """The Python that has the peers; None where they cannot be had."""
    python = _FOLDER / "bin/python"
    ready = _FOLDER / "ready"
    if not ready.is_file():
        print("perf: installing Polars and DataFusion below build/perf", file=sys.stderr)
        venv.create(_FOLDER, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", *_PACKAGES]
        if subprocess.run(pip, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            note("Polars and DataFusion cannot be had; comparing with DuckDB alone")
            return None
        ready.touch()
    return str(python)


class Peer:
    """A process of the peer that has the rows of a folder in memory."""

    def __init__(self, python: str, name: str, workload: str, folder: Path, threads: int) -> None:
        self._name = name
        # -P: modules of perf have names of the standard library's.
        argv = [python, "-P", str(_CLIENT), name, workload, str(folder), str(threads)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Peer:
        self.ask()  # until it has read the rows
        return self

    def ask(self) -> tuple[float, tuple[int, ...]]:
        """The seconds of a query, and its answer: rows and sums."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("both are pipes")
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise WrongAnswer(f"{self._name}: it ended without an answer")
        seconds, *answer = json.loads(line)
        return float(seconds), tuple(map(int, answer))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()
