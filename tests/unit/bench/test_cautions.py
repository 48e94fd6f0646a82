"""Warnings of what a run could not record, and of deployments that had no thread left."""

from __future__ import annotations

from typing import Any

from atoll.bench.analysis import summarise
from atoll.schema.operators import QueryProfile
from atoll.schema.results import (
    EngineWork,
    Line,
    PassPlaces,
    QueryProfiled,
    QueryWork,
    VerifyResult,
)
from atoll.schema.whereabouts import Whereabouts
from tests.parts.bench import WIC, WIM, header, lines, query_failed, results


def said(code: str, *more: Line) -> list[str]:
    found = results([*lines((WIM, WIC), 2)[:-1], *more], header(WIM, WIC, blocks_asked=2))
    return [one.message for one in summarise(found).warnings if one.code == code]


def profiled(query: str, unknown: str = "") -> QueryProfiled:
    profile = None if unknown else QueryProfile(operators=())
    return QueryProfiled(block=0, label=WIC.label, query=query, profile=profile, unknown=unknown)


def seen(block: int, *unknown: str) -> PassPlaces:
    figures: dict[str, Any] = dict.fromkeys(Whereabouts.model_fields)
    counts = {"processes": 1, "threads": 1, "elsewhere": 0}
    nodes: dict[str, Any] = {"cpu_s_by_node": {}, "bytes_by_node": {}}
    places = Whereabouts.model_validate({**figures, **counts, **nodes, "unknown": unknown})
    return PassPlaces(block=block, label=WIC.label, places=places)


def worked(block: int, query: str) -> QueryWork:
    return QueryWork(block=block, label=WIC.label, query=query, work=EngineWork(read_bytes=1))


def test_profiles_that_could_not_be_read_are_one_warning_per_reason() -> None:
    assert said("profile-unread", profiled("q1"), profiled("q6")) == []
    assert said("profile-unread", profiled("q1", "no plan"), profiled("q6", "no plan")) == [
        "spark/wic: how it runs q1, q6 is unknown, so no part of 'why': no plan"
    ]
    left_out = query_failed(1, WIC.label, "q6")
    assert said("profile-unread", profiled("q1"), profiled("q6", "no plan"), left_out) == []


def test_what_could_not_be_seen_of_places_is_one_warning_per_entrant() -> None:
    assert said("places-unseen", seen(0), seen(1)) == []
    denied = [f"/proc/{pid}/io: Permission denied" for pid in (17, 23)]
    (message,) = said("places-unseen", seen(0, denied[0], "memory: gone"), seen(1, denied[1]))
    assert message.endswith(": /proc/PID/io: Permission denied; memory: gone")


def test_counts_of_only_some_queries_are_a_warning() -> None:
    every = [worked(block, query) for block in (0, 1) for query in ("q1", "q6")]
    assert said("work-uncounted") == said("work-uncounted", *every) == []
    (message,) = said("work-uncounted", *every[:3])
    assert "3 of 4 measured queries" in message


def test_a_deployment_without_a_thread_has_none_in_the_wrong_place() -> None:
    gone = VerifyResult(block=0, label=WIC.label, threads=0, drifted=1, detail="it died")
    assert said("drift", gone) == ["spark/wic: no thread was left (it died)"]
