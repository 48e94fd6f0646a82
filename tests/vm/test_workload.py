"""A workload in a guest with two nodes: the local share that it estimates of its pages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from atoll.guest.guest import Guest
from atoll.schema.base import parse
from atoll.schema.workload import WorkloadResult


@pytest.mark.parametrize("guest", ["milan2"], indirect=True)
@pytest.mark.parametrize(
    ("placement", "memory", "least", "most"),
    [
        ("dense", "first-touch", 0.95, 1.0),
        ("sparse", "preferred", 0.45, 0.55),  # all pages on node 0, and half of the threads
        pytest.param("dense", "interleave", 0.45, 0.55, marks=pytest.mark.long),
    ],
)
def test_the_local_share_follows_threads_and_pages(
    guest: Guest, root: Path, placement: str, memory: str, least: float, most: float
) -> None:
    words = "workload run w1 --records 1000000 --threads 4 --runs 1 --no-check --json"
    # Without huge pages, of which there would be about twenty: too few to be shared out evenly.
    words += f" --no-thp --placement {placement} --memory {memory}"
    done = guest.run([sys.executable, "-m", "atoll", *words.split()], timeout_s=300, cwd=str(root))
    assert done.returncode == 0, done.stderr
    found = parse(WorkloadResult, done.stdout, where="stdout")
    assert len({*found.pin}) == 4
    assert found.local_share_estimated is not None
    assert least <= found.local_share_estimated <= most, found.local_share_estimated
