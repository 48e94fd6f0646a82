"""What Atoll reads of a JobManager's answers and of a task manager's thread dump.

job.json and threads.txt are of Flink 2.2.1, with eight of a job's 44 tasks.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.engines.flink.documents import (
    Counts,
    Exceptions,
    Job,
    Overview,
    TaskManagers,
    Vertex,
    read,
    read_metrics,
)
from atoll.engines.flink.graph import Stretch, edges, kind_of, operators, source_rate, waiting
from atoll.engines.flink.subtasks import operator_ids, parse_name, threads_of
from atoll.engines.flink.tally import parse_tally, percentile_ms, whole_seconds
from atoll.errors import EngineFailed
from atoll.inspect.jvm import parse_thread_names
from atoll.inspect.tasks import Thread
from atoll.schema.operator_graph import OperatorGraph, Source
from atoll.schema.operators import Kind

HERE = Path(__file__).parent
PID = 7
JOB = read(Job, (HERE / "job.json").read_bytes(), "job.json")
NAMES = {
    Thread(PID, tid): name
    for tid, name in parse_thread_names((HERE / "threads.txt").read_text()).items()
}


def job(parallelism: Mapping[str, int], *inputs: tuple[str, str, str]) -> Job:
    """Vertices whose ids are their names; `inputs`: giver, taker, strategy."""
    nodes = [
        {
            "id": name,
            "inputs": [{"id": a, "ship_strategy": how} for a, b, how in inputs if b == name],
        }
        for name in parallelism
    ]
    document = {
        "jid": "1",
        "name": "j",
        "state": "RUNNING",
        "vertices": [
            {"id": name, "name": name, "parallelism": count, "metrics": {}}
            for name, count in parallelism.items()
        ],
        "plan": {"nodes": nodes},
    }
    return read(Job, json.dumps(document), "made up")


def stretches(**counts: Mapping[str, int]) -> dict[str, Stretch]:
    """Over 2 s."""
    return {
        name: Stretch(2.0, Counts(), Counts.model_validate(found)) for name, found in counts.items()
    }


def test_a_recorded_job() -> None:
    assert JOB.state == "RUNNING"
    home = next(vertex for vertex in JOB.vertices if vertex.name == "home page")
    assert home.counts.bytes_in > home.counts.bytes_out > 0
    assert home.counts.busy_ms > 0


def test_each_recorded_thread_has_its_operator() -> None:
    found = threads_of(JOB.vertices, NAMES, {})
    assert set(found) == {vertex.name for vertex in JOB.vertices}
    for operator, threads in found.items():
        assert NAMES[threads[0]] == f"{operator} (1/1)#0"
        assert all(NAMES[thread].endswith(f" {operator} (1/1)#0") for thread in threads[1:])
    # One flushes for each of its takers, and it has timers of two kinds.
    assert len(found["Source: browse"]) == 1 + 4 + 2
    placed = {thread for threads in found.values() for thread in threads}
    left = {name for thread, name in NAMES.items() if thread not in placed}
    assert left == {
        "C2 CompilerThread0",
        "Reference Handler",
        "flink-rate-limiter-thread-1",
        "flink-scheduler-1",
    }


@pytest.mark.parametrize(
    ("name", "task", "subtask", "serves"),
    [
        ("Map (3/4)#0", "Map", 2, False),
        ("Map (x) -> Filter (1/1)#12", "Map (x) -> Filter", 0, False),
        ("Legacy Source Thread - Source: a (1/2)#0", "Source: a", 0, True),
        ("Source Data Fetcher for Source: a (2/2)#0", "Source: a", 1, True),
        ("System Time Trigger for Map (1/1)#0", "Map", 0, True),
    ],
)
def test_names_of_threads(name: str, task: str, subtask: int, serves: bool) -> None:
    named = parse_name(name)
    assert named is not None
    assert (named.task, named.subtask, named.serves) == (task, subtask, serves)


@pytest.mark.parametrize("name", ["main", "Map (1/1)", "Map (2/1)#0", "Map (0/1)#0", ""])
def test_other_threads(name: str) -> None:
    assert parse_name(name) is None


def test_subtasks_are_operators_of_their_own() -> None:
    two = job({"a": 1, "b": 2}, ("a", "b", "HASH"))
    names = {Thread(PID, 1): "a (1/1)#0", Thread(PID, 2): "b (2/2)#1", Thread(8, 9): "b (1/2)#0"}
    assert threads_of(two.vertices, names, {}) == {
        "a": (Thread(PID, 1),),
        "b (1/2)": (Thread(8, 9),),
        "b (2/2)": (Thread(PID, 2),),
    }


def alike(*busy_ms: float) -> tuple[Vertex, ...]:
    return tuple(
        Vertex.model_validate(
            {
                "id": f"{number}" * 32,
                "name": "Map",
                "parallelism": 1,
                "metrics": {"accumulated-busy-time": each},
            }
        )
        for number, each in enumerate(busy_ms)
    )


def test_tasks_of_the_same_name_are_told_apart_by_how_busy_they_are() -> None:
    vertices = alike(10, float("nan"), 500)
    names = {Thread(PID, tid): "Map (1/1)#0" for tid in (1, 2, 3)}
    names[Thread(PID, 4)] = "OutputFlusher for Map (1/1)#0"
    used = {Thread(PID, 1): 9.0, Thread(PID, 2): 0.1, Thread(PID, 3): 1.0}
    assert threads_of(vertices, names, used) == {
        "Map 00000000": (Thread(PID, 2),),
        "Map 22222222": (Thread(PID, 3),),
        "Map 11111111": (Thread(PID, 1),),
    }


def test_a_name_that_another_job_has_too_is_given_to_nobody() -> None:
    names = {Thread(PID, tid): "Map (1/1)#0" for tid in (1, 2, 3)}
    assert threads_of(alike(1, 2), names, {}) == {}
    assert threads_of(alike(1), names, {}) == {}


def test_bytes_are_measured_where_one_vertex_takes_or_gives_them() -> None:
    many = job(
        {"a": 1, "b": 1, "c": 1, "d": 1},
        *(("a", "b", "HASH"), ("a", "c", "HASH"), ("b", "d", "FORWARD"), ("c", "d", "HASH")),
    )
    counted = stretches(
        a={"write-bytes": 800},
        b={"read-bytes": 300, "write-bytes": 60},
        c={"read-bytes": 500, "write-bytes": 40},
        d={"read-bytes": 100},
    )
    known = {(e.giver, e.taker): e.bytes_per_s for e in edges(many, counted)}
    values = {pair: (each.value, each.source) for pair, each in known.items() if each}
    assert values == {
        ("a", "b"): (150, Source.MEASURED),
        ("a", "c"): (250, Source.MEASURED),
        ("b", "d"): (30, Source.MEASURED),
        ("c", "d"): (20, Source.MEASURED),
    }


def test_bytes_are_estimated_between_several_givers_and_takers() -> None:
    crossed = job(
        {"a": 1, "b": 1, "c": 2, "d": 1},
        *(("a", "c", "HASH"), ("b", "c", "HASH"), ("a", "d", "HASH"), ("b", "d", "HASH")),
    )
    counted = stretches(a={"write-bytes": 800}, b={"write-bytes": 80})
    known = {(e.giver, e.taker): e.bytes_per_s for e in edges(crossed, counted)}
    values = {pair: (each.value, each.source) for pair, each in known.items() if each}
    assert values == {
        ("a", "c (1/2)"): (100, Source.ESTIMATED),
        ("a", "c (2/2)"): (100, Source.ESTIMATED),
        ("b", "c (1/2)"): (10, Source.ESTIMATED),
        ("b", "c (2/2)"): (10, Source.ESTIMATED),
        ("a", "d"): (200, Source.ESTIMATED),
        ("b", "d"): (20, Source.ESTIMATED),
    }


def test_forward_edges_join_subtasks_of_the_same_number() -> None:
    straight = job({"a": 3, "b": 3}, ("a", "b", "FORWARD"))
    assert [(e.giver, e.taker, e.bytes_per_s) for e in edges(straight, {})] == [
        (f"a ({number}/3)", f"b ({number}/3)", None) for number in (1, 2, 3)
    ]


def test_the_rate_is_that_of_the_sources_and_who_waits_is_named() -> None:
    pair = job({"a": 1, "b": 2}, ("a", "b", "HASH"))
    counted = stretches(
        a={"write-records": 10, "accumulated-backpressured-time": 300},
        b={"write-records": 4, "accumulated-backpressured-time": 150},
    )
    assert source_rate(pair, counted) == 5
    assert waiting(pair, counted, 0.05) == ("a",)


@pytest.mark.parametrize(
    ("name", "description", "kind"),
    [
        ("Source: a -> Map", "", Kind.SCAN),
        ("Filter", "", Kind.FILTER),
        ("b", "Window(Tumbling...)<br/>", Kind.AGGREGATE),
        ("Join[4]", "where=[a > b]", Kind.JOIN),
        ("Rank[7]", "", Kind.SORT),
        ("c: Writer", "c: Writer<br/>", Kind.OTHER),
    ],
)
def test_kinds_by_words(name: str, description: str, kind: Kind) -> None:
    assert kind_of(name, description) == kind


def test_the_graph_of_the_recorded_job() -> None:
    found = OperatorGraph(
        rate=None,
        operators=operators(JOB, {"home page": Kind.FILTER}, {}),
        edges=edges(JOB, {}),
    )
    kinds = {each.id: each.kind for each in found.operators}
    assert kinds["Source: browse"] is Kind.SCAN
    assert kinds["home page"] is Kind.FILTER
    assert kinds["visits of customer"] is Kind.AGGREGATE
    assert ("Source: browse", "home page") in {(e.giver, e.taker) for e in found.edges}
    assert len(found.edges) == 7


def test_what_is_no_answer_is_refused_in_one_line() -> None:
    for text in ("", "[]", "{}", "[" * 10000, '{"jobs": [{"jid": 1}]}'):
        for kind in (Job, Overview, TaskManagers):
            with pytest.raises(EngineFailed, match=r"^x: not an answer of a Flink") as fault:
                read(kind, text, "x")
            assert "\n" not in str(fault.value)


def test_a_count_beyond_any_job_is_refused() -> None:
    document: Any = json.loads((HERE / "job.json").read_bytes())
    document["vertices"][0]["metrics"]["read-bytes"] = 1 << 70
    with pytest.raises(EngineFailed, match="read-bytes"):
        read(Job, json.dumps(document), "x")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.data())
def test_any_change_of_a_document_is_read_or_refused(data: st.DataObject) -> None:
    document: Any = json.loads((HERE / "job.json").read_bytes())
    at = document
    for _ in range(data.draw(st.integers(0, 5))):
        if not isinstance(at, dict | list) or not at:
            break
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if data.draw(st.booleans()):
            at[key] = data.draw(JSON)
        at = at[key]
    try:
        found = read(Job, json.dumps(document), "x")
    except EngineFailed:
        return
    counted = {vertex.id: Stretch(1.0, Counts(), vertex.counts) for vertex in found.vertices}
    ids = [name for each in operator_ids(found.vertices).values() for name in each]
    if len(set(ids)) == len(ids):
        OperatorGraph(rate=None, operators=operators(found, {}, {}), edges=edges(found, counted))
    threads_of(found.vertices, NAMES, {})


@given(st.text() | st.binary().map(lambda found: found.decode(errors="replace")))
def test_any_text_is_read_or_refused(text: str) -> None:
    for kind in (Job, Overview, TaskManagers, Exceptions):
        with contextlib.suppress(EngineFailed):
            read(kind, text, "x")
    with contextlib.suppress(EngineFailed):
        read_metrics(text, "x")
    parse_tally(text)
    parse_name(text)
    parse_name(f"{text} (1/2)#0")


def test_tallies() -> None:
    ages = parse_tally("10:1 200:98 x 3 300:1 4:-1")
    assert ages == {10: 1, 200: 98, 300: 1}
    assert percentile_ms(ages, 50) == pytest.approx(1.05**200 / 1000)
    assert percentile_ms(ages, 99) == pytest.approx(1.05**200 / 1000)
    assert percentile_ms({10: 1, 20: 1}, 50) == pytest.approx(1.05**10 / 1000)
    with pytest.raises(ValueError, match="no rows"):
        percentile_ms({}, 50)
    assert whole_seconds(parse_tally("5:2 7:3 9:9"), 5, 9) == (2, 0, 3, 0)
