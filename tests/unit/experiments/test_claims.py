"""The language of claims: what it reads, what it refuses, and how it judges."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import UsageError
from atoll.experiments.claims import (
    MARGIN,
    Outcome,
    Reading,
    Term,
    judge,
    parse_claim,
    parse_term,
)
from atoll.stats.paired import Estimate, Interval

NAMES = st.from_regex(r"[a-z][a-z_]{0,7}", fullmatch=True)
VALUES = st.from_regex(r"[a-z0-9:-]{1,8}", fullmatch=True)
TERMS = st.builds(Term, NAMES, st.dictionaries(NAMES, VALUES, max_size=3))
RATIOS = st.lists(st.floats(0.01, 100), min_size=5, max_size=9)


def over(*values: float, of: str = "") -> Reading:
    return Reading.over(dict(enumerate(values)), of)


def outcome(text: str, **readings: Reading | str) -> Outcome:
    return judge(parse_claim(text), lambda term: readings[term.name]).outcome


@given(TERMS)
def test_a_term_is_read_as_it_is_written(term: Term) -> None:
    assert parse_term(str(term)) == term


@given(TERMS, TERMS, st.sampled_from([">", ">=", "~"]), st.floats(0.1, 99))
def test_a_claim_is_read_as_it_is_written(a: Term, b: Term, sign: str, factor: float) -> None:
    claim = parse_claim(f"{a} {sign} {factor:.2f} * {b} and {b} {sign} {factor:.1f}")
    assert parse_claim(" and ".join(map(str, claim))) == claim
    assert [one.left.term for one in claim] == [a, b]
    assert claim[1].right.term is None


@given(st.text(max_size=40))
def test_any_text_is_a_claim_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        parse_claim(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speedup(n=1)", "comparison"),
        ("speedup(n=1) < 1", "comparison"),
        ("speedup(n=1) > > 1", "comparison"),
        ("speedup(n=1) > __import__('os')", "neither"),
        ("speedup(n=1, n=2) > 1", "once"),
        ("speedup(n) > 1", "KEY=VALUE"),
        ("0 * speedup() > 1", "0"),
        ("", "comparison"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_claim(text)


@given(RATIOS)
def test_more_and_less_exclude_each_other(ratios: list[float]) -> None:
    blocks = dict(enumerate(ratios))
    there = outcome("a() > b()", a=Reading.over(blocks, "a"), b=over(*[1.0] * len(ratios), of="b"))
    back = outcome("b() > a()", a=Reading.over(blocks, "a"), b=over(*[1.0] * len(ratios), of="b"))
    assert not (there is back is Outcome.HELD)


@given(RATIOS)
def test_more_implies_at_least(ratios: list[float]) -> None:
    a = Reading.over(dict(enumerate(ratios)), "a")
    if outcome("a() > 1", a=a) is Outcome.HELD:
        assert outcome("a() >= 1", a=a) is Outcome.HELD
    if outcome("a() >= 1", a=a) is Outcome.NOT:
        assert outcome("a() > 1", a=a) is Outcome.NOT


@given(RATIOS)
def test_as_much_is_the_same_both_ways(ratios: list[float]) -> None:
    a, b = Reading.over(dict(enumerate(ratios)), "a"), over(*[2.0] * len(ratios), of="b")
    assert outcome("a() ~ b()", a=a, b=b) is outcome("b() ~ a()", a=a, b=b)


@pytest.mark.parametrize(
    ("values", "more", "least", "same"),
    [
        ([1.5, 1.6, 1.5, 1.4, 1.5], Outcome.HELD, Outcome.HELD, Outcome.NOT),
        ([1.0, 1.01, 0.99, 1.0, 1.02], Outcome.NOT, Outcome.HELD, Outcome.HELD),
        ([0.5, 0.6, 0.5, 0.4, 0.5], Outcome.NOT, Outcome.NOT, Outcome.NOT),
        ([0.5, 2.0, 0.7, 1.5, 1.0], Outcome.UNJUDGED, Outcome.UNJUDGED, Outcome.UNJUDGED),
    ],
)
def test_an_interval_decides(
    values: list[float], more: Outcome, least: Outcome, same: Outcome
) -> None:
    a = over(*values)
    assert outcome("a() > 1", a=a) is more
    assert outcome("a() >= 1", a=a) is least
    assert outcome("a() ~ 1", a=a) is same


def test_the_ratio_is_of_pairs_and_so_free_of_what_all_blocks_share() -> None:
    slow = [1.0, 9.0, 3.0, 0.2, 5.0]
    a, b = over(*(2 * one for one in slow), of="a"), over(*slow, of="b")
    assert outcome("a() > b()", a=a, b=b) is Outcome.HELD
    assert outcome("a() ~ 2 * b()", a=a, b=b) is Outcome.HELD


def test_independent_estimates_need_intervals_that_do_not_meet() -> None:
    def estimate(value: float, low: float, high: float) -> Reading:
        return Reading(Estimate(value, Interval(low, high), 9))

    a, b = estimate(2, 1.8, 2.2), estimate(1, 0.9, 1.1)
    assert outcome("a() > b()", a=a, b=b) is Outcome.HELD
    assert outcome("a() > 2 * b()", a=a, b=b) is Outcome.UNJUDGED
    assert outcome("a() > 3 * b()", a=a, b=b) is Outcome.NOT
    assert MARGIN == 1.1


def test_what_cannot_be_judged_says_why() -> None:
    few, same = over(2.0, 2.0), over(*[2.0] * 5, of="x")

    def why(text: str, **readings: Reading | str) -> str:
        verdict = judge(parse_claim(text), lambda term: readings[term.name])
        assert verdict.outcome is Outcome.UNJUDGED
        return verdict.reasons[0]

    assert "fewer than 5 blocks" in why("a() > 1", a=few)
    assert "same deployment" in why("a() > b()", a=same, b=same)
    assert "not measured" in why("a() > 1", a="not measured")
    assert "same deployment" in why("a() >= b()", a=same, b=same)
    assert "same deployment" in why("a() ~ b()", a=same, b=same)
    own = replace(over(*[1.0] * 5, of="x"), by_name=True)
    for sign in (">", ">=", "~"):
        assert "its own baseline" in why(f"a() {sign} 1", a=own)
    assert "its own baseline" in why("a() ~ b()", a=own, b=replace(own, of="y"))
    reaches_0 = Reading(Estimate(2, None, 1))
    assert why("a() > 1", a=reaches_0).endswith("without an interval")
    assert "no block has both" in why("a() > b()", a=few, b=Reading.over({7: 1.0}, "b"))


def test_the_best_may_be_the_other_side() -> None:
    same = over(*[2.0] * 5, of="x")
    assert outcome("a() >= best()", a=same, best=same) is Outcome.HELD


def test_a_claim_on_the_least_query_is_one_on_every_query() -> None:
    def least(*each: Reading) -> Reading:
        return replace(each[0], each=each)

    good, unsure, bad = (
        over(*[1.0] * 5, of="w q1"),
        over(0.4, 3.0, 0.5, 2.5, 1.03, of="w q6"),
        over(*[0.5] * 5, of="w q7"),
    )
    assert outcome("a() >= 1", a=least(good, good)) is Outcome.HELD
    assert outcome("a() >= 1", a=least(good, unsure)) is Outcome.UNJUDGED
    verdict = judge(parse_claim("a() >= 1"), lambda _: least(good, unsure, bad))
    assert verdict.outcome is Outcome.NOT and verdict.reasons[0].endswith("(w q7)")


def test_what_decides_comes_first_and_a_margin_is_said() -> None:
    readings = {"a": over(1.0, 1.01, 0.99, 1.0, 1.02), "b": over(2.0, 2.1, 2.0, 2.1, 2.0)}
    verdict = judge(parse_claim("b() > 1 and a() > 1"), lambda term: readings[term.name])
    assert verdict.outcome is Outcome.NOT
    first, second = verdict.reasons
    assert first.startswith("did not hold: a() > 1: ") and first.endswith("so not 10% more")
    assert second.startswith("held: b() > 1")


def test_one_comparison_that_fails_fails_the_claim() -> None:
    good, bad = over(*[2.0] * 5, of="g"), over(*[0.5] * 5, of="b")
    assert outcome("g() > 1 and b() > 1 and n() > 1", g=good, b=bad, n="none") is Outcome.NOT
    assert outcome("g() > 1 and n() > 1", g=good, n="none") is Outcome.UNJUDGED
    assert outcome("g() > 1 and g() > b()", g=good, b=bad) is Outcome.HELD
