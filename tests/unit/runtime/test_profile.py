"""The C++ runtime's profile, read from Python.

The sample is what native/tests/runtime/profiler/formats_test.cpp writes, byte for byte, so the
writer and these records cannot part ways.
"""

from __future__ import annotations

import json

import pytest

from atoll.errors import UsageError
from atoll.schema.base import parse
from atoll.schema.runtime_profile import RuntimeProfile, WorkerCounts
from tests.parts.paths import DATA

SAMPLE = DATA / "runtime-profile.json"


def read(text: str) -> RuntimeProfile:
    return parse(RuntimeProfile, text, where="sample")


def test_the_cpp_sample_is_read() -> None:
    profile = read(SAMPLE.read_text())
    assert profile.cpu == "AMD Zen 4"
    full, empty = profile.workers
    assert full.counts.tasks == 1
    assert full.counts.yields == len(WorkerCounts.model_fields)  # it numbers them all
    assert full.fills.local_chiplet == 1000
    assert full.fills.node_cache is None
    assert full.usage.cpu_migrations == 5
    assert [section.name for section in full.sections] == ['build "side"', "probe phase"]
    assert full.sections[1].fills.memory_local is None
    assert empty.tid == 0
    assert empty.usage.cpu_s is None
    assert [l3.occupancy_bytes for l3 in profile.l3] == [16_777_216, None]


def test_it_comes_back_as_it_was() -> None:
    text = SAMPLE.read_text()
    assert json.loads(read(text).model_dump_json()) == json.loads(text)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"version":1', '"version":2', "version 2"),
        ('"tasks":', '"tusks":', "tasks"),
        ('"seconds":12.5', '"seconds":-1', "seconds"),
        ('"running_share":0.8', '"running_share":8', "running_share"),
        ('"tid":4242', '"tid":null', "tid"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, says: str) -> None:
    text = SAMPLE.read_text()
    assert old in text
    with pytest.raises(UsageError, match=says):
        read(text.replace(old, new, 1))
