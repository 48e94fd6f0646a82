"""Why an entrant is faster: operators compared, plans compared, recorded once, shown."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from atoll.bench.analysis import summarise
from atoll.bench.why import (
    MOST_SHARE,
    Profiles,
    changes,
    explanation,
    holders,
    plan_changes,
)
from atoll.errors import EngineFailed
from atoll.report.bench.markdown import markdown
from atoll.report.bench.render import render
from atoll.report.bench.text import bench_text, why_text
from atoll.schema.operators import Kind, Operator, QueryProfile
from atoll.schema.results import PassDone, QueryProfiled
from tests.parts.bench import WIC, WIM, FakeServer, Run, header, lines, results

TABLES = ("customer", "lineitem", "orders")


def operator(name: str, kind: Kind, *tables: str, own_s: float = 1.0, **more: Any) -> Operator:
    return Operator(node="0", operator=name, kind=kind, tables=tables, own_s=own_s, rows=1, **more)


operators = st.builds(
    Operator,
    node=st.just("0"),
    operator=st.sampled_from(("HASH_JOIN", "SCAN", "SORT")),
    kind=st.sampled_from(list(Kind)),
    tables=st.lists(st.sampled_from(TABLES), max_size=2).map(lambda found: tuple(sorted(found))),
    own_s=st.none() | st.integers(0, 1000).map(float),
    rows=st.none() | st.integers(0, 10),
    join=st.sampled_from(("", "inner", "semi")),
    distribution=st.sampled_from(("", "broadcast", "partitioned")),
    tasks=st.none() | st.integers(1, 4),
)
plans = st.lists(operators, max_size=8)
pairs = st.dictionaries(st.sampled_from(("q1", "q6")), st.tuples(plans, plans))


def sides(found: dict[str, tuple[list[Operator], list[Operator]]]) -> tuple[Profiles, Profiles]:
    return (
        {query: base for query, (base, _) in found.items()},
        {query: entrant for query, (_, entrant) in found.items()},
    )


def whole(profiles: Profiles) -> float:
    return sum(one.own_s or 0 for found in profiles.values() for one in found)


@given(pairs)
def test_changes_add_up_to_the_whole_difference(found: Any) -> None:
    before, after = sides(found)
    differences = [one.after_s - one.before_s for one in changes(before, after)]
    assert sum(differences) == whole(after) - whole(before)
    for sign in (1, -1):
        shares = [
            one.share for one in changes(before, after) if (one.after_s - one.before_s) * sign > 0
        ]
        assert not shares or sum(shares) == pytest.approx(1)


@given(pairs)
def test_the_other_way_round_everything_is_the_opposite(found: Any) -> None:
    before, after = sides(found)
    there = {(one.query, one.tables, one.before_s, one.after_s) for one in changes(before, after)}
    back = {(one.query, one.tables, one.after_s, one.before_s) for one in changes(after, before)}
    assert there == back
    assert {(one.what, one.before, one.after) for one in plan_changes(before, after)} == {
        (one.what, one.after, one.before) for one in plan_changes(after, before)
    }


@given(pairs)
def test_an_entrant_does_not_differ_from_itself(found: Any) -> None:
    before, _ = sides(found)
    why = explanation("a", "b", before, before)
    assert (why.operators, why.plan) == ((), ())


@given(pairs, st.randoms())
def test_the_order_of_operators_says_nothing(found: Any, random: Any) -> None:
    before, after = sides(found)
    mixed = {query: random.sample(two, len(two)) for query, two in after.items()}
    assert explanation("a", "b", before, after) == explanation("a", "b", before, mixed)


@given(pairs)
def test_the_named_operators_go_the_way_of_the_whole(found: Any) -> None:
    before, after = sides(found)
    gain = whole(before) - whole(after)
    named = holders(changes(before, after))
    assert bool(named) == bool(gain)
    assert all((one.before_s - one.after_s) * gain > 0 for one in named)
    assert sum(one.share for one in named[:-1]) < MOST_SHARE, "no more than needed"


def test_plans_are_compared_by_what_a_planner_decides() -> None:
    scan = operator("Scan", Kind.SCAN, "orders")
    how: dict[str, Any] = {"join": "inner", "tasks": 2}
    before = [
        operator("InnerJoin", Kind.JOIN, "lineitem", "orders", distribution="broadcast", **how),
        operator("RemoteSource", Kind.EXCHANGE, "orders", distribution="broadcast"),
        scan,
    ]
    after = [
        operator("InnerJoin", Kind.JOIN, "lineitem", "orders", distribution="partitioned", **how),
        operator("RemoteSource", Kind.EXCHANGE, "orders", distribution="partitioned"),
        operator("RemoteSource", Kind.EXCHANGE, "lineitem", distribution="partitioned"),
        scan.model_copy(update={"tasks": 8}),
    ]
    twice = plan_changes({"q3": before, "q5": before}, {"q3": after, "q5": after})
    assert [(one.what, one.before, one.after) for one in twice] == [
        ("exchanges", "1 broadcast", "2 partitioned"),
        ("join of lineitem, orders", "InnerJoin inner, broadcast", "InnerJoin inner, partitioned"),
        ("most tasks of an operator", "2", "8"),
    ]
    assert {one.queries for one in twice} == {("q3", "q5")}, "what differs alike stands once"


def test_another_join_order_shows_as_joins_of_other_tables() -> None:
    before = [operator("HASH_JOIN", Kind.JOIN, "lineitem", "orders")]
    after = [operator("HASH_JOIN", Kind.JOIN, "customer", "orders")]
    found = plan_changes({"q": before}, {"q": after})
    assert [(one.what, one.before, one.after) for one in found] == [
        ("join of customer, orders", "–", "HASH_JOIN"),
        ("join of lineitem, orders", "HASH_JOIN", "–"),
    ]


def profile(scan_s: float, how: str = "broadcast") -> QueryProfile:
    return QueryProfile(
        operators=(
            operator("HASH_JOIN", Kind.JOIN, *TABLES[1:], own_s=0.5, distribution=how),
            operator("SCAN", Kind.SCAN, "lineitem", own_s=scan_s),
        )
    )


def test_each_entrant_is_profiled_once_and_outside_the_measured_passes() -> None:
    run = Run(header(blocks_asked=2), profiles=lambda sql: profile(1.0))
    run.bench.run()
    found = run.of(QueryProfiled)
    assert [(one.block, one.label, one.query) for one in found] == [
        (0, label, query) for label in ("spark/wim", "spark/wic") for query in ("q1", "q6")
    ]
    kinds = [type(one) for one in run.records]
    assert kinds.index(QueryProfiled) == kinds.index(PassDone) + 1
    again = Run(header(blocks_asked=2), profiles=lambda sql: profile(1.0))
    again.bench.profiled = run.results.profiled
    again.bench.run()
    assert not again.of(QueryProfiled), "a resumed run has them already"


def test_a_query_that_fails_while_profiled_costs_no_block() -> None:
    def refuse(sql: str) -> QueryProfile:
        raise EngineFailed("out of memory")

    run = Run(header(blocks_asked=3), profiles=refuse)
    run.bench.run()
    assert [(one.block, one.query, one.unknown) for one in run.of(QueryProfiled)] == [
        (0, query, "out of memory") for query in ("q1", "q6")
    ] * 2, "the server lives, so the other queries are profiled"
    assert len(run.of(PassDone)) == 6
    assert summarise(run.results).why == ()


def test_a_server_lost_while_profiled_is_asked_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> Any:
        raise EngineFailed("it hung up")

    monkeypatch.setattr(FakeServer, "reconnect", lost)
    run = Run(header(blocks_asked=1), profiles=lost)
    run.bench.run()
    assert [one.query for one in run.of(QueryProfiled)] == ["q1", "q1"], "one of each entrant"


def test_the_time_of_profiles_is_no_time_of_a_block() -> None:
    def slow(sql: str) -> QueryProfile:
        run.host.sleep(100.0)
        return profile(1.0)

    run = Run(header(blocks_asked=1), profiles=slow)
    elapsed: list[float] = []
    run.bench.check_time = lambda label, seconds: elapsed.append(seconds)
    run.bench.run()
    assert len(elapsed) == 2 and max(elapsed) < 100


def test_a_long_label_is_cut_at_its_beginning_and_no_number_is() -> None:
    name = f"spark/wim, masked/{'memory=bind/' * 3}cores=1"
    long = WIC.model_copy(update={"label": name})
    given_ = [
        *lines((WIM, long), 2)[:-1],
        *(
            QueryProfiled(block=0, label=one.label, query="q1", profile=profile(scan_s))
            for one, scan_s in ((WIM, 4.0), (long, 1.0))
        ),
    ]
    out = io.StringIO()
    whole = summarise(results(given_, header(WIM, long, blocks_asked=2)))
    Console(file=out, width=80).print(*why_text(whole))
    row = next(line.rstrip() for line in out.getvalue().splitlines() if "SCAN" in line)
    assert row.startswith("…") and "cores=1 " in row and row.endswith("100 %") and len(row) <= 80


def test_reports_say_why_where_the_engine_tells() -> None:
    given_ = [
        *lines((WIM, WIC), 2)[:-1],
        *(
            QueryProfiled(block=0, label=label, query="q1", profile=profile(*how))
            for label, how in ((WIM.label, (4.0,)), (WIC.label, (1.0, "partitioned")))
        ),
    ]
    found = results(given_, header(WIM, WIC, blocks_asked=2))
    (why,) = summarise(found).why
    assert (why.label, why.before_s, why.after_s, why.queries) == ("spark/wic", 4.5, 1.5, 1)
    assert [(one.operator, one.share) for one in why.operators] == [("SCAN", 1.0)]
    out = io.StringIO()
    Console(file=out, width=80).print(bench_text(summarise(found)))
    for text in (out.getvalue(), markdown(summarise(found)), render(found, "html")):
        assert "SCAN" in text and "lineitem" in text and "join of" in text
        assert "4.00 s" in text and "1.00 s" in text
    assert max(map(len, out.getvalue().splitlines())) <= 80
    silent = results(lines((WIM, WIC), 2), header(WIM, WIC, blocks_asked=2))
    assert "Why" not in render(silent, "html") and "Why" not in markdown(summarise(silent))
