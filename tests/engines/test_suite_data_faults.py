"""The data of a suite, while it is made: the disk fills up, Ctrl-C, kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from atoll.bench.results import read_results
from atoll.supervise import records
from tests.parts.deployment import until
from tests.parts.namespaces import need

NAMESPACE = ("unshare", "--map-root-user", "--mount")
# A disk of 20 MB as the cache, which something fills as soon as there is a table on it.
FILLING = """
mount -t tmpfs -o size=20m small "$XDG_CACHE_HOME" || exit 99
(until find "$XDG_CACHE_HOME" -name '*.parquet' | grep -q .; do sleep 0.005; done
 cat /dev/zero >"$XDG_CACHE_HOME/filler" 2>/dev/null) &
"$@"; x=$?
kill $! 2>/dev/null
find "$XDG_CACHE_HOME/atoll" -type f ! -name '.*.lock'
exit $x
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def command(suite: str, scale_factor: float, path: Path) -> list[str]:
    atoll = (sys.executable, "-m", "atoll", "bench", "duckdb", "--policies", "wim")
    return [*atoll, "--suite", suite, "--sf", f"{scale_factor:g}", "--blocks", "1", "-o", str(path)]


@pytest.mark.parametrize(
    ("suite", "scale_factor", "said"),
    [
        pytest.param("tpch", 0.05, "nothing was kept", marks=pytest.mark.long),
        ("jcch", 0.05, "nothing was kept"),
        ("join", 0.01, "nothing was kept"),
        ("tpcds", 0.01, "20 MiB is free"),  # before it begins
    ],
)
def test_a_disk_that_fills_up_keeps_nothing(
    suite: str, scale_factor: float, said: str, cache: Path, tmp_path: Path
) -> None:
    need(*NAMESPACE)
    path = tmp_path / "r.jsonl"
    done = subprocess.run(
        [*NAMESPACE, "sh", "-c", FILLING, "sh", *command(suite, scale_factor, path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 6, done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stdout == "", done
    assert said in done.stderr and f"{cache}/atoll/{suite}: not enough room" in done.stderr
    assert not path.exists()


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGKILL]
)
def test_a_generator_ends_with_the_bench_and_its_data_is_made_again(
    number: signal.Signals, cache: Path, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    asked = [*command("jcch", 0.05, path), "--queries", "1"]
    with subprocess.Popen(asked, stderr=subprocess.PIPE, text=True) as bench:
        until(
            lambda: bool(list(cache.rglob("*.parquet"))) or bench.poll() is not None,
            lambda: "no table was made",
        )
        bench.send_signal(number)
        errors = bench.communicate()[1]
    assert bench.returncode == (130 if number == signal.SIGINT else -number), errors
    until(lambda: not generators(cache), lambda: generators(cache))
    assert records.names() == [] and not path.exists()
    assert not (cache / "atoll/jcch/sf0.05").exists()
    again = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)
    assert again.returncode == 0, again.stderr
    assert (end := read_results(path).end) is not None and end.status == "complete"
    assert not list(cache.rglob("*.unfinished"))


def generators(cache: Path) -> list[int]:
    """The living processes that write there."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{entry}/cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if "atoll.suites.jcch_data" in words and str(cache) in words:
            found.append(int(entry))
    return found
