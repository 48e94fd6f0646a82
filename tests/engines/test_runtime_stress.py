"""The task runtime under everything at once for ten minutes (runtime/scheduler/stress.cpp).

Five seconds of it are part of every `make test`, under the sanitizers too.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.parts.paths import ROOT

SECONDS = 600


@pytest.mark.long
def test_ten_minutes_of_stress(record_property: Callable[[str, object], None]) -> None:
    for command in (
        ["cmake", "--preset", "release", "--log-level=WARNING"],
        ["cmake", "--build", "--preset", "release", "--target", "runtime-stress"],
    ):
        subprocess.run(command, cwd=ROOT, check=True)
    done = subprocess.run(
        [str(ROOT / "build/release/native/tests/runtime/scheduler/runtime-stress"), str(SECONDS)],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS + 120,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rounds, all right" in done.stdout
    record_property("figures", " ".join(done.stdout.split()))
