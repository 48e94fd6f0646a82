"""The task runtime under everything at once (runtime/scheduler/stress.cpp), and random programs on
a made-up machine of 128 cores (random_programs.cpp): ten minutes each, or ATOLL_STRESS_SECONDS.

A few seconds of both are part of every `make test`, under the sanitizers too.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from tests.parts.paths import ROOT

SECONDS = int(os.environ.get("ATOLL_STRESS_SECONDS", "600"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("runtime-stress", []),
        ("runtime-random-programs", ["1", "64"]),
        ("runtime-random-programs", ["2", "3"]),
    ],
)
def test_stress(
    program: str, arguments: list[str], record_property: Callable[[str, object], None]
) -> None:
    for command in (
        ["cmake", "--preset", "release", "--log-level=WARNING"],
        ["cmake", "--build", "--preset", "release", "--target", program],
    ):
        subprocess.run(command, cwd=ROOT, check=True)
    path = ROOT / "build/release/native/tests/runtime/scheduler" / program
    done = subprocess.run(
        [str(path), str(SECONDS), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS + 300,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", all right" in done.stdout
    record_property("figures", " ".join(done.stdout.split()))
