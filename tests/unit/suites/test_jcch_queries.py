"""JCC-H's queries: skewed parameters meet the skew, plain ones do not, by any seed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.errors import UsageError
from atoll.suites import jcch_data, reference, registry
from atoll.suites.base import DataSet
from atoll.suites.jcch import QUERY_NAMES, Jcch
from atoll.suites.jcch_queries import NUMBERS, parameters
from atoll.suites.jcch_shape import NATIONS
from atoll.suites.selection import select_queries
from tests.parts.faults import fails

SEEDS = st.integers(0, 10**9 - 1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("jcch")
    jcch_data.write_tables(0.02, folder)
    return {table: folder / f"{table}.parquet" for table in jcch_data.TABLES}


def test_q1_is_that_of_tpch_and_the_others_are_not() -> None:
    plain, texts = reference.query_texts("tpch"), Jcch().queries("duckdb")
    assert tuple(texts) == QUERY_NAMES
    assert texts["q1"] == texts["q1p"] == plain["q1"]
    for number in NUMBERS[1:]:
        assert len({plain[f"q{number}"], texts[f"q{number}"], texts[f"q{number}p"]}) == 3


@given(SEEDS)
def test_every_engine_has_every_query_for_every_seed(seed: int) -> None:
    for engine in ("duckdb", "postgresql", "mariadb", "spark", "trino", "presto"):
        assert tuple(Jcch(seed).queries(engine)) == QUERY_NAMES


@given(SEEDS)
def test_skewed_parameters_meet_the_skew_and_plain_ones_do_not(seed: int) -> None:
    skewed, plain = (
        {number: " ".join(parameters(number, seed, skewed=one).values()) for number in NUMBERS}
        for one in (True, False)
    )
    large_nations = {next(iter(nations)) for nations in NATIONS.values()}
    for number in (7, 8, 11, 20, 21):
        assert any(name in skewed[number] for name in large_nations)
        assert not any(f"'{name}'" in plain[number] for name in large_nations)
    for number in (4, 5, 6, 7, 8, 10, 12, 14, 15, 20):
        years = set(map(int, re.findall(r"\b(199\d)-", plain[number])))
        assert years <= {1995, 1996, 1997}, "1997 only as the end of 1996"
        assert not set(map(int, re.findall(r"\b(199\d)-", skewed[number]))) & {1996}
    assert "Brand#55" in skewed[17] and "LG BOX" in skewed[17] and "Brand#55" in skewed[19]
    assert "#55" not in plain[17] + plain[19] + plain[16] + skewed[16]
    assert "(1, " in skewed[16] and "(1, " not in plain[16]
    assert "REG AIR" in skewed[12]
    assert all(f"'{code}'" in skewed[22] for code in (40, 50, 60, 70, 80))
    assert "l_quantity <= 100" in skewed[18] and "l_quantity <= 50" in plain[18]
    assert "mine" in plain[13] and "mine" not in skewed[13]


@given(SEEDS)
def test_a_seed_always_draws_the_same(seed: int) -> None:
    assert Jcch(seed).queries("duckdb") == Jcch(seed).queries("duckdb")
    assert registry.get(f"jcch:{seed}").name == ("jcch" if seed == 1 else f"jcch:{seed}")


def test_answers_are_there_for_skewed_and_plain_parameters(files: dict[str, Path]) -> None:
    empty = [
        name
        for name, text in Jcch(1).queries("duckdb").items()
        if not reference.run(text, files)[1]
    ]
    # Of small nations, few suppliers and customers are left at this scale factor.
    assert [name for name in empty if not name.endswith("p")] == []
    assert len(reference.run(Jcch(1).queries("duckdb")["q18"], files)[1]) == 5


def test_the_join_that_postgresql_has_as_q17_gives_the_same_answer(files: dict[str, Path]) -> None:
    standard, joined = Jcch(1).queries("duckdb"), Jcch(1).queries("postgresql")
    for query in ("q17", "q17p"):
        assert joined[query] != standard[query]
        assert reference.run(joined[query], files) == reference.run(standard[query], files)


def test_unknown_names_are_refused() -> None:
    with fails(UsageError, query="'q23'", known="q1 to q22 and q1p to q22p"):
        Jcch().expected("q23", DataSet("jcch", 1, Path("/"), (), ""))
    with fails(UsageError, name="jcch:x"):
        registry.get("jcch:x")


def test_queries_are_selected_with_their_letter() -> None:
    assert select_queries("2-3p,q1", QUERY_NAMES) == ("q1", "q2p", "q3p")
    assert select_queries("Q2p-3P", QUERY_NAMES) == ("q2p", "q3p")
    assert len(select_queries("1-22", QUERY_NAMES)) == 22
    for wrong in ("1p-3", "3p-1p"):
        with fails(UsageError, part=f"'{wrong}'"):
            select_queries(wrong, QUERY_NAMES)
    for wrong in ("1x", "23p"):
        with fails(UsageError, query=f"q{wrong}", first="q1", last="q22p"):
            select_queries(wrong, QUERY_NAMES)
