"""DuckDB on Atoll's workers under everything at once (duckdb_stress.py): no leak, no lost query.

A quarter of a minute of it in every `make test`; under AddressSanitizer and UBSan, twenty seconds
in `make test-san` and an hour in `make test-long`.

What the sanitizers see: atoll._duckdb with the pool and the runtime below it, and what it hands to
others. DuckDB, Python and the C++ library are as they are, but their malloc is the sanitizer's, so
that a freed or foreign block that they get from us shows, too. What LeakSanitizer finds at the end
counts if our code asked for it: it cannot see pointers that lie in DuckDB's own heap (its jemalloc)
or in libraries' tables, so of others' memory it is often wrong. Growth is judged by the weights of
the process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.parts.duckdb_stress_run import GROWTH_BYTES, LEAST_ROUNDS, Weight, growths
from tests.parts.paths import ROOT

SHORT_S = 15
SANITIZED_S = 20
HOUR_S = 3600
SLACK_S = 600  # beside the seconds asked for: data, plain answers, and a watchdog that ends it
NATIVE = ROOT / "build/asan/native/src/duckdb"

Record = Callable[[str, object], None]


@pytest.mark.installed
def test_a_quarter_of_a_minute(record_property: Record) -> None:
    _stress(SHORT_S, {}, record_property)


@pytest.mark.long
def test_twenty_seconds_under_asan(record_property: Record) -> None:
    _under_asan(SANITIZED_S, record_property)


@pytest.mark.long
def test_an_hour_under_asan(record_property: Record) -> None:
    _under_asan(HOUR_S, record_property)


def _under_asan(seconds: int, record_property: Record) -> None:
    python = f"-DPython_EXECUTABLE={sys.executable}"
    targets = ["_duckdb", "atoll-duckdb-extension-file"]
    for command in (
        ["cmake", "--preset", "asan", "--log-level=WARNING", "-DATOLL_PYTHON=ON", python],
        ["cmake", "--build", "--preset", "asan", "--target", *targets],
    ):
        subprocess.run(command, cwd=ROOT, check=True)
    said = _stress(seconds, _sanitized(), record_property, "--native", str(NATIVE))
    assert "ERROR: AddressSanitizer" not in said, said
    assert "runtime error:" not in said, said
    assert own_leaks(said) == []


def _sanitized() -> dict[str, str]:
    """The variables for a Python that is not built with the sanitizer."""
    library = subprocess.run(
        ["g++", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    ).stdout.strip()
    # C++ exceptions are caught by the sanitizer only where it finds __cxa_throw as it begins.
    throws = subprocess.run(
        ["g++", "-print-file-name=libstdc++.so.6"], check=True, capture_output=True, text=True
    ).stdout.strip()
    return {
        "LD_PRELOAD": f"{library} {throws}",
        # Freed memory is kept from use for a while; little of it, so that the weight settles soon.
        # The leaks do not decide the exit status, see `own_leaks`.
        "ASAN_OPTIONS": "detect_leaks=1:quarantine_size_mb=32:thread_local_quarantine_size_kb=64",
        "LSAN_OPTIONS": "exitcode=0:max_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # Else Python's objects lie where LeakSanitizer does not look for pointers.
        "PYTHONMALLOC": "malloc",
    }


def _stress(
    seconds: int, environment: dict[str, str], record_property: Record, *options: str
) -> str:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.parts.duckdb_stress"),
            *(str(seconds), "1", *options),
        ],
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds + SLACK_S,
    )
    print(done.stdout[-20_000:])
    assert done.returncode == 0, done.stdout[-20_000:]
    assert "\nall right\n" in done.stdout
    record_property("figures", done.stdout.partition("\n")[0])
    return done.stdout


_FRAME = re.compile(r"^\s+#\d+ 0x[0-9a-f]+ (?:in )?(.*)$")
# Those that ask malloc on behalf of the one below; Python's with debug symbols, or without.
_ALLOCATORS = (
    *("libasan", "libsanitizer", "libstdc++", "libc.so", "libpython", "/bin/python"),
    *(" Objects/", " Modules/", " Python/", " Include/"),
)


def own_leaks(said: str) -> list[str]:
    """The leaks in a LeakSanitizer report that our code asked for, itself or by Python's calls."""
    blocks = re.split(r"\n(?=(?:Direct|Indirect) leak of )", said)[1:]
    return [block for block in blocks if _is_ours(block.partition("\n\n")[0])]


def _is_ours(block: str) -> bool:
    for line in block.splitlines():
        frame = _FRAME.match(line)
        if frame is None or any(name in frame[1] for name in _ALLOCATORS):
            continue
        return "/native/" in frame[1]
    return False


def test_a_leak_of_ours_is_told_from_others() -> None:
    asked = "    #0 0x7f1 in operator new(unsigned long) (/usr/lib/libasan.so.8+0xb7)\n"
    ours = "    #1 0x7f2 in atl::duckdb::Pool::begin() /x/native/src/duckdb/pool.cpp:5\n"
    others = "    #1 0x7f3 in PyInit__duckdb (/x/site-packages/_duckdb.cpython-311.so+0x5)\n"
    said = (
        "==1==ERROR: LeakSanitizer: detected memory leaks\n"
        f"\nDirect leak of 8 byte(s) in 1 object(s) allocated from:\n{asked}{ours}"
        f"\nIndirect leak of 9 byte(s) in 1 object(s) allocated from:\n{asked}{others}{ours}"
        "\nSUMMARY: AddressSanitizer: 17 byte(s) leaked in 2 allocation(s).\n"
    )
    (found,) = own_leaks(said)
    assert found.startswith("Direct leak of 8 byte(s)")
    assert own_leaks("all right\n") == []


def test_what_grows_is_told() -> None:
    level = [Weight(1 << 28, 1 << 25, threads=12, files=7)] * LEAST_ROUNDS
    assert growths(level) == []
    half = LEAST_ROUNDS // 2
    more = Weight((1 << 28) + GROWTH_BYTES + 1, 1 << 25, threads=12, files=7)
    (said,) = growths(level[:half] + [more] * half)
    assert said.startswith("resident_bytes grew from 256.0 to 288.0")
    (said,) = growths([*level[:3], Weight(1 << 28, 1 << 25, threads=13, files=7)])
    assert said == "threads: 12, then 13"
