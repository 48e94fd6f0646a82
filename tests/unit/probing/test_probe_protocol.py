"""The real atoll-probe on malformed requests: each gets exactly one answer.

Fields use only values that cost no time: CPUs that no machine has, or values that are refused.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

PROBE = str(Path(sys.executable).parent / "atoll-probe")
CODES = {"argument", "cpu", "memory", "kernel"}
KERNELS = ("spin", "ping", "pipe", "chase", "move", "load", "vector", "churn")
ABSENT_CPU = 65_535

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=4,
)
fields = st.sampled_from(
    [
        "home",
        "op",
        "null",
        "budget_ns",
        "settle",
        "samples",
        "node",
        "bytes",
        "huge",
        "gap",
        "iterations",
        "operations",
        "seed",
        "store",
        "isa",
        "start_ns",
        "run_ns",
        "loaders",
    ]
)
requests = st.builds(
    # The CPUs come last, so that no mutation makes a kernel really run.
    lambda kernel, others: {"do": kernel, **others, "cpu": ABSENT_CPU, "cpus": [0, ABSENT_CPU]},
    st.sampled_from(KERNELS),
    st.dictionaries(fields, json_values, max_size=4),
)
lines = st.one_of(
    requests.map(lambda request: json.dumps(request).encode()),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b"")),
)


@pytest.fixture(scope="module")
def probe() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([PROBE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        stream(process.stdin).close()
        assert process.wait(timeout=30) == 0


def stream(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def ask(process: subprocess.Popen[bytes], line: bytes) -> dict[str, Any]:
    stream(process.stdin).write(line + b"\n")
    stream(process.stdin).flush()
    answer = json.loads(stream(process.stdout).readline())
    assert isinstance(answer, dict)
    return answer


@settings(max_examples=80)
@given(line=lines)
def test_every_line_is_refused_with_a_reason(probe: subprocess.Popen[bytes], line: bytes) -> None:
    answer = ask(probe, line)
    assert answer["ok"] is False
    assert answer["code"] in CODES - {"kernel"}
    assert answer["error"]


def test_it_goes_on_after_refusals(probe: subprocess.Popen[bytes]) -> None:
    assert ask(probe, b"[" * 100_000)["code"] == "argument"
    assert ask(probe, b'"' + b"x" * (1 << 20) + b'"')["error"] == "this line is too long"
    assert ask(probe, b'{"do": "hello"}')["version"] == 1


def run(text: bytes, *argv: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PROBE, *argv], input=text, capture_output=True, timeout=60)


def test_it_ends_with_its_input() -> None:
    done = run(b"")
    assert (done.returncode, done.stdout) == (0, b"")
    # The last line may lack its end.
    assert json.loads(run(b'{"do": "hello"}').stdout)["ok"] is True


def test_arguments_are_refused() -> None:
    done = run(b"", "--what")
    assert done.returncode == 2
    assert done.stderr.startswith(b"atoll-probe: ")


@pytest.mark.parametrize("end", ["signal", "reader"])
def test_a_long_request_does_not_outlive_its_asker(end: str) -> None:
    """Ten minutes of spinning, ended by SIGTERM or because nobody reads its answers any more."""
    cpu = min(os.sched_getaffinity(0))
    request = {"do": "spin", "cpus": [cpu], "budget_ns": 600_000_000_000, "settle": 0}
    request["samples"] = 1_000_000
    process = subprocess.Popen([PROBE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        hello = ask(process, b'{"do": "hello"}')
        assert hello["ok"]
        stream(process.stdin).write(json.dumps(request).encode() + b"\n")
        stream(process.stdin).flush()
        if end == "signal":
            process.send_signal(signal.SIGTERM)
        else:
            stream(process.stdout).close()
        status = process.wait(timeout=60)
        assert status in ({-signal.SIGTERM} if end == "signal" else {0, -signal.SIGPIPE})
    finally:
        process.kill()
        process.wait()
        stream(process.stdin).close()
        stream(process.stdout).close()
