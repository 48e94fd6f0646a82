"""`atoll.runtime`: places, mapping, and what a profile says."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from atoll import runtime
from atoll.errors import UsageError
from tests.parts.paths import DATA

SAMPLE = DATA / "runtime-profile.json"


def test_places_here_are_this_process_s() -> None:
    places = runtime.places_here()
    cpus = {cpu for core in places.cores for cpu in core.cpus}
    assert cpus <= os.sched_getaffinity(0)
    assert not places.made_up
    assert 1 <= places.workers <= len(places.cores)
    assert repr(places).startswith(f"<Places cores={len(places.cores)} chiplets=")


def test_made_up_places() -> None:
    places = runtime.synthetic_places("node:2 chiplet:2 core:4", [7])
    assert (len(places.cores), places.chiplets, places.nodes) == (16, 4, [0, 1])
    assert places.workers == 16
    assert places.made_up
    assert repr(places) == "<Places cores=16 chiplets=4 nodes=2 made up>"
    last = places.cores[-1]
    assert (last.cpus, last.chiplet, last.node, last.package) == ([7], 3, 1, 0)
    assert places.chiplet_levels[0] == [0, 1, 2, 2]
    assert places.chiplet_l3_bytes == 0


def test_workers_are_seated_as_by_the_runtime() -> None:
    places = runtime.synthetic_places("chiplet:2 core:4")
    assert runtime.spread_cores(places, 4, 2) == (0, 1, 4, 5)


def test_errors_are_one_line() -> None:
    with pytest.raises(UsageError, match="column 6"):
        runtime.synthetic_places("core:x")
    with pytest.raises(UsageError, match="JSON"):
        runtime.places_from_machine("{")
    with pytest.raises(UsageError, match="smallest spread"):
        runtime.spread_cores(runtime.synthetic_places("chiplet:2 core:2"), 3, 1)
    with pytest.raises(UsageError, match="cannot be read"):
        runtime.read_profile("/no/such/profile.json")


def test_a_file_that_is_no_profile(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"format": "atoll/machine"}')
    with pytest.raises(UsageError, match=str(other)):
        runtime.read_profile(other)


def test_counts_add_up() -> None:
    profile = runtime.read_profile(SAMPLE)
    counts = [worker.counts for worker in profile.workers]
    assert runtime.totals(profile).yields == sum(one.yields for one in counts)
    assert runtime.totals(profile).tasks == sum(one.tasks for one in counts)
    sections = runtime.section_totals(profile)
    assert list(sections) == ['build "side"', "probe phase"]
    assert sections["probe phase"] == profile.workers[0].sections[1].counts


def test_seats_are_those_of_live_threads(tmp_path: Path) -> None:
    document = json.loads(SAMPLE.read_text())
    document["workers"][0]["tid"] = threading.get_native_id()
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(document))
    places = runtime.places_here()
    [seat] = runtime.seats(runtime.read_profile(file), places)  # the other worker never ran
    assert set(seat.cpus) == os.sched_getaffinity(0)
    assert seat.nodes == tuple(places.nodes)
    assert seat.chiplets == tuple(range(places.chiplets))


def test_seats_of_a_program_that_has_ended(tmp_path: Path) -> None:
    document = json.loads(SAMPLE.read_text())
    document["workers"][0]["tid"] = 2**22 + 1  # above any kernel's pid_max
    file = tmp_path / "profile.json"
    file.write_text(json.dumps(document))
    with pytest.raises(UsageError, match="the program must still run"):
        runtime.seats(runtime.read_profile(file), runtime.places_here())
