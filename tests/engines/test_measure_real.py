"""`atoll measure` of this machine, end to end: whatever cannot depend on how fast it is.

The whole command with the real atoll-probe. No figure is judged by its size: only that it is one,
that it stands where its CPUs say, and that nothing is left when the command ends or is ended.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from atoll.schema.profile import Kind, Profile

ATOLL = str(Path(sys.executable).parent / "atoll")
CPUS = sorted(os.sched_getaffinity(0))[:2]
# Kinds whose time does not grow with the memory of the machine.
KINDS = [Kind.LATENCY, Kind.BANDWIDTH, Kind.CACHE, Kind.CHURN]
TIMEOUT_S = 120.0


def measure(state: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [ATOLL, "measure", *arguments],
        env=os.environ | {"XDG_STATE_HOME": str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def probes_of(pid: int) -> list[int]:
    """The command's children that are atoll-probe, by the kernel's word."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [
            int(child)
            for child in children
            if Path(f"/proc/{child}/comm").read_text() == "atoll-probe\n"
        ]
    except OSError:
        return []


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, set[int]]:
    """A file that -o wrote, what --json printed, and the probes that were at work."""
    state = tmp_path_factory.mktemp("state")
    file = state / "profile.json"
    cpus = ",".join(map(str, CPUS))
    probes: set[int] = set()
    command = measure(
        state, "--quick", "--only", ",".join(KINDS), "--cpus", cpus, "--json", "-o", str(file)
    )
    deadline = time.monotonic() + TIMEOUT_S
    printed = ""
    while time.monotonic() < deadline:
        probes.update(probes_of(command.pid))
        try:
            printed, said = command.communicate(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            continue
    else:
        command.kill()
        command.communicate()
        pytest.fail(f"not at its end after {TIMEOUT_S:g} s")
    assert command.returncode == 0, said
    return file, printed, probes


def test_the_file_is_what_was_printed_and_follows_the_published_schema(
    measured: tuple[Path, str, set[int]], root: Path
) -> None:
    file, printed, _ = measured
    written = json.loads(file.read_text())
    assert written == json.loads(printed)
    jsonschema.validate(
        written, json.loads((root / "docs/formats/profile.schema.json").read_text())
    )


def test_every_matrix_has_the_shape_of_its_cpus_and_figures_that_are_some(
    measured: tuple[Path, str, set[int]],
) -> None:
    profile = Profile.model_validate_json(measured[1])
    assert list(profile.cpus) == CPUS
    assert profile.nodes is None and not profile.stream and not profile.sharing
    for matrix in (
        profile.core_latency_cas_ns,
        profile.core_latency_store_ns,
        profile.core_bandwidth_gbs,
    ):
        if len(CPUS) < 2:
            assert matrix is None
            continue
        assert matrix is not None and list(matrix.pus) == CPUS
        array = matrix.array()
        assert array.shape == (len(CPUS), len(CPUS))
        missing = [notice for notice in profile.left_out if notice.message.startswith("core ")]
        for i, row in enumerate(array):
            for j, value in enumerate(row):
                if i == j or (missing and math.isnan(value)):  # on a machine that stood still
                    assert math.isnan(value)
                else:
                    assert 0 < value < math.inf
    for curve in profile.caches:
        sizes = [point.working_set_bytes for point in curve.points]
        assert curve.cpu in CPUS and sizes == sorted(set(sizes))
        for point in curve.points:
            latency = point.latency_ns
            assert 0 < latency.low <= latency.value <= latency.high
    for run in profile.churn:
        assert run.seconds.value > 0 and run.overhead > 0 and 1 <= run.threads <= len(CPUS)


def test_what_is_missing_is_said(measured: tuple[Path, str, set[int]]) -> None:
    profile = Profile.model_validate_json(measured[1])
    said = " ".join(notice.message for notice in profile.left_out)
    assert profile.caches or "cache" in said
    assert profile.churn or "churn" in said


def test_threads_and_pages_were_where_they_should_be(measured: tuple[Path, str, set[int]]) -> None:
    profile = Profile.model_validate_json(measured[1])
    assert [watch.kind for watch in profile.watch] == KINDS
    for watch in profile.watch:
        assert watch.misplaced_threads == watch.misplaced_pages == 0, watch


def test_no_process_is_left(measured: tuple[Path, str, set[int]]) -> None:
    _, _, probes = measured
    assert probes
    assert not [pid for pid in probes if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "profile.json"
    command = measure(tmp_path, "--quick", "--cpus", str(CPUS[0]), "-o", str(file))
    deadline = time.monotonic() + TIMEOUT_S
    probes: list[int] = []
    while not probes and command.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
        probes = probes_of(command.pid)
    assert probes, command.communicate()
    command.send_signal(number)
    _, said = command.communicate(timeout=120)
    assert command.returncode == 130, said
    assert "Traceback" not in said
    while any(Path(f"/proc/{pid}").exists() for pid in probes) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in probes if Path(f"/proc/{pid}").exists()]
    assert list(tmp_path.rglob("*.json*")) == []  # no half of a file


def test_a_probe_that_dies_does_not_take_the_command_with_it(tmp_path: Path) -> None:
    command = measure(tmp_path, "--quick", "--only", "cache", "--cpus", str(CPUS[0]), "--json")
    assert command.stderr is not None
    # Past its greeting: a probe that cannot start is another matter.
    told = [command.stderr.readline() for _ in range(2)]
    assert told[1].startswith("[1/1]"), told
    (probe,) = probes_of(command.pid)
    os.kill(probe, signal.SIGKILL)
    printed, said = command.communicate(timeout=TIMEOUT_S)
    assert command.returncode == 0, said
    answer: dict[str, Any] = json.loads(printed)
    assert answer["caches"] or answer["left_out"]
