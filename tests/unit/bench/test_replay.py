"""The user's SQL against clusters: what is read, when an answer has changed, what is reported."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atoll.bench.analysis import summarise
from atoll.bench.first_answers import FirstAnswers
from atoll.bench.replay import Connector
from atoll.bench.results import resumable
from atoll.engines import registry
from atoll.engines.api import Client, Column, QueryResult, RemoteEngine
from atoll.engines.facts import STANDARD_SQL, facts_of
from atoll.errors import EngineFailed, UsageError
from atoll.report.bench.render import render
from atoll.report.bench.text import bench_text
from atoll.schema.results import (
    BlockFailed,
    ClusterLook,
    Entrant,
    Line,
    PassDone,
    ProcessSeen,
    QueryFailed,
    RunEnd,
    RunHeader,
)
from atoll.suites.folder import bare, choose, natural, read_folder
from tests.parts.bench import IDLE, FakeClient, Run, header, lines, results
from tests.parts.bench import time as query_time
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails

# ---- the folder ----------------------------------------------------------------------------------


def sql_of(engine: str) -> str:
    return facts_of(registry.get(engine)).comments_and_quotes


def write(folder: Path, **texts: str | bytes) -> str:
    for name, text in texts.items():
        data = text if isinstance(text, bytes) else text.encode()
        (folder / f"{name}.sql").write_bytes(data)
    return str(folder)


def test_a_folder_is_read_in_natural_order(tmp_path: Path) -> None:
    path = write(
        tmp_path, q10="select 10", q2="select 2;", b="select 1 -- ;\n;", a="\ufeffselect 0"
    )
    (tmp_path / "README.md").write_text("no query")
    found = read_folder(path, STANDARD_SQL)
    assert list(found.texts.items()) == [
        ("a", "select 0"),
        ("b", "select 1"),
        ("q2", "select 2"),
        ("q10", "select 10"),
    ]
    assert found.name == tmp_path.name
    before = found.checksum
    write(tmp_path, q2="select 3")
    assert read_folder(path, STANDARD_SQL).checksum != before


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", {}),
        (" ;\n-- nothing\n/* at all */ ;", {}),
        ("select 1; select 2", {"count": 2}),
        (b"select 1\n, '\xff'", {"line": 2}),
    ],
)
def test_files_that_are_no_query_are_named(
    tmp_path: Path, text: str | bytes, named: dict[str, int]
) -> None:
    path = write(tmp_path, one=text)
    with fails(UsageError, path=f"{path}/one.sql", **named):
        read_folder(path, STANDARD_SQL)


def test_folders_that_are_none(tmp_path: Path) -> None:
    with fails(UsageError, path=tmp_path):
        read_folder(str(tmp_path), STANDARD_SQL)
    with fails(UsageError, path=tmp_path / "none"):
        read_folder(str(tmp_path / "none"), STANDARD_SQL)
    for name in ("pass", "a\nb", "\udce9"):
        folder = tmp_path / str(len(name))
        folder.mkdir(exist_ok=True)
        with fails(UsageError, folder=folder, name=name.encode("unicode_escape").decode()):
            read_folder(write(folder, **{name: "select 1"}), STANDARD_SQL)
        (folder / f"{name}.sql").unlink()


@pytest.mark.parametrize(
    ("sql", "engine"),
    [
        ("select ';', \"a;b\" -- ; x\n from t /* ; */", "trino"),
        ("select $f$ ; $f$, $$;$$", "postgresql"),
        ("select 'C:\\', ';'", "trino"),
        (r"select 'it\'s;', `a;b` # ; x", "mariadb"),
        (r"select E'it\'s;', date'2020-01-01'", "postgresql"),
        ("select 'it''s;'", "trino"),
    ],
)
def test_semicolons_that_end_no_statement(sql: str, engine: str) -> None:
    assert ";" not in bare(sql, sql_of(engine))
    assert len(bare(sql, sql_of(engine))) == len(sql)


def test_two_dashes_may_be_a_sum(tmp_path: Path) -> None:
    path = write(tmp_path, one="select 5--1", two="select 5 -- 1")
    assert list(read_folder(path, sql_of("mariadb")).texts.values()) == ["select 5--1", "select 5"]
    assert list(read_folder(path, STANDARD_SQL).texts.values()) == ["select 5", "select 5"]


def test_names_that_differ_in_zeros_have_one_order(tmp_path: Path) -> None:
    path = write(tmp_path, q1="select 1", q01="select 2")
    assert list(read_folder(path, STANDARD_SQL).texts) == ["q01", "q1"]


def test_a_literal_at_the_end_stays(tmp_path: Path) -> None:
    found = read_folder(write(tmp_path, one="select 'a;b' ; -- the end"), STANDARD_SQL)
    assert found.texts["one"] == "select 'a;b'"


@given(st.lists(st.integers(0, 10**6), unique=True))
def test_numbers_in_names_sort_by_value(numbers: list[int]) -> None:
    names = [f"q{number}" for number in numbers]
    assert sorted(names, key=natural) == [f"q{number}" for number in sorted(numbers)]


def test_choosing_queries() -> None:
    assert choose(None, ("a", "b")) == ("a", "b")
    assert choose("b, a", ("a", "b")) == ("a", "b")
    with fails(UsageError, name="'c'", known="a, b"):
        choose("c", ("a", "b"))
    with fails(UsageError, name="','", known="a, b"):
        choose(",", ("a", "b"))


# ---- answers -------------------------------------------------------------------------------------


def answer(*rows: tuple[Any, ...]) -> QueryResult:
    return QueryResult((Column("k", "bigint"), Column("f", "double")), list(rows), 0.1)


def work(sql: str) -> FirstAnswers:
    return FirstAnswers({"trino": {"q": sql}}, STANDARD_SQL)


def test_the_first_answer_is_what_others_are_held_against() -> None:
    mine = work("select k, f from t")
    assert mine.check("q", answer((1, 0.5), (2, 0.25))) is None
    assert mine.check("q", answer((2, 0.25), (1, 0.5 * (1 + 1e-12)))) is None, "in any order"
    assert mine.check("q", answer((1, 0.5))) is not None
    differing = mine.check("q", answer((1, 0.5), (2, 0.26)))
    assert differing is not None and "row 2 is (2, 0.26)" in differing
    other = QueryResult((Column("k", "varchar"), Column("f", "double")), [("1", 0.5)], 0.1)
    assert mine.check("q", other) == "its columns are text, float, and were whole, float"


def test_an_order_by_holds_and_a_limit_may_cut() -> None:
    mine = work("select k, f from t order by k -- ('\n limit 2")
    assert mine.check("q", answer((1, 0.5), (2, 0.25))) is None
    assert mine.check("q", answer((2, 0.25), (1, 0.5))) is not None
    assert mine.check("q", answer((1, 0.5), (2, 0.75))) is None, "another of the last key's rows"
    assert mine.check("q", answer((1, 0.25), (2, 0.75))) is not None


def test_a_resumed_bench_knows_its_answers_again() -> None:
    first = answer((1, 0.5), (2, 0.25))
    digest = work("select 1").digest("q", first)
    line = query_time(0, "spark/wim", "q", 1.0).model_copy(update={"digest": digest})
    same, other = work("select 1"), work("select 1")
    for one in (same, other):
        one.recall(results([line]))
    assert same.check("q", answer((2, 0.3), (1, 0.5))) is None, "floats are not told from it"
    assert other.check("q", answer((1, 0.5), (3, 0.25))) == "it changed while the run was stopped"


def test_a_decimal_with_other_zeros_is_the_same_answer() -> None:
    def digest(value: str) -> str:
        columns = (Column("d", "decimal(9,2)"),)
        return work("select d").digest("q", QueryResult(columns, [(Decimal(value),)], 0.1))

    assert digest("1.0") == digest("1.00") != digest("1.01")


def test_rows_that_a_limit_may_choose_among_are_not_known_again() -> None:
    mine = work("select k, f from t order by f limit 2")
    columns = (Column("k", "bigint"), Column("f", "bigint"))

    def found(*rows: tuple[int, int]) -> str:
        return mine.digest("q", QueryResult(columns, list(rows), 0.1))

    assert found((1, 5), (2, 6)) == found((1, 5), (3, 6)), "another row of the same key"
    assert found((1, 5), (2, 6)) != found((1, 5), (2, 7))
    assert found((1, 5)) != found((2, 5)), "nothing was cut"


# ---- results and reports -------------------------------------------------------------------------

CLUSTER = Entrant(label="trino/h:8080", engine="trino", url="http://h:8080/hive")
SEEN = ProcessSeen(pid=1, process="java", masks={"0-3": 40, "0": 2}, memory_policy="default")


def replayed(**more: Any) -> RunHeader:
    values = {"scale_factor": None, "suite": "mine", "suite_checksum": "ab" * 32}
    return header(CLUSTER, **{**values, "queries": ("daily <x>", "q6"), **more})


def test_a_report_of_a_cluster() -> None:
    drifted = SEEN.model_copy(update={"drift": ("java tid 7: thread-mask: 0 instead of 0-3",)})
    given: list[Line] = [
        ClusterLook(block=0, label=CLUSTER.label, when="before", processes=(drifted, SEEN)),
        query_time(0, CLUSTER.label, "daily <x>", 0.5).model_copy(
            update={"answer": "changed", "detail": "1 rows, expected 2"}
        ),
        *lines((CLUSTER,), 2),
        ClusterLook(block=1, label=CLUSTER.label, when="after", processes=(SEEN, SEEN)),
    ]
    given = [
        one.model_copy(update={"query": "daily <x>"}) if getattr(one, "query", "") == "q1" else one
        for one in given
    ]
    found = results(given, replayed())
    summary = summarise(found)
    codes = {one.code: one.message for one in summary.warnings}
    assert "1 time, first in block 1" in codes["answer-changed"]
    assert "0 instead of 0-3" in codes["cluster-drift"]
    assert not {"drift", "page-cache", "wrong-answer"} & set(codes)
    (one,) = summary.entrants
    assert (one.policy, one.instances, one.heap_bytes) == (None, None, None)
    assert one.processes == (SEEN, SEEN)
    for kind in ("html", "md", "csv", "json"):
        told = render(found, kind)
        assert CLUSTER.label in told
        assert "<x>" not in told or kind in ("csv", "json")
    page = render(found, "html")
    assert "2 × java: CPUs 0, 0-3, memory policy default" in page
    assert "A cluster that was already running" in page and "Equal for all" not in page
    assert bench_text(summary) is not None


def test_only_the_same_sql_at_the_same_url_is_resumed() -> None:
    found = results(lines((CLUSTER,), 1)[:-1], replayed())
    assert resumable(found, replayed(), where="r").header.suite == "mine"
    elsewhere = CLUSTER.model_copy(update={"url": "http://h:8080/other"})
    for wanted, named in (
        (replayed(suite_checksum="cd" * 32), {"what": "SQL", "before": "ab" * 6, "now": "cd" * 6}),
        (
            replayed(entrants=(elsewhere,)),
            {"what": "url", "before": CLUSTER.url, "now": "http://h:8080/other"},
        ),
    ):
        with fails(UsageError, where="r", **named):
            resumable(found, wanted, where="r")


def test_an_entrant_has_a_plan_or_a_url() -> None:
    for more in ({}, {"url": "http://h", "plan": header().entrants[0].plan}):
        with pytest.raises(ValueError, match="either a plan or a URL"):
            Entrant.model_validate({"label": "x", "engine": "trino", **more})


# ---- clusters ------------------------------------------------------------------------------------


class Cluster:
    """A `RemoteEngine` of a cluster with these numbers of worker instances."""

    facts = facts_of(registry.get("trino"))

    def __init__(self, *instances: int) -> None:
        self.instances = list(instances)  # at each look, the last one from then on
        self.host = FakeHost(IDLE)

    def reach(self, url: str, *, timeout_s: float) -> Client:
        cluster = self

        class Connected(FakeClient):
            def instances(self, *, timeout_s: float) -> int:
                found = cluster.instances
                return found.pop(0) if len(found) > 1 else found[0]

        return Connected(self.host, trouble=self.query)

    def query(self, sql: str) -> None:
        if sql == "wrong":
            raise EngineFailed("no column wrong for ann:hush")


def replay(cluster: Cluster) -> Run:
    url = "http://ann:hush@h:8080/hive"
    engine = cast(RemoteEngine, cluster)
    run = Run(replayed(queries=("q1", "wrong"), blocks_asked=3))
    run.bench.host = cluster.host
    run.bench.deploy = Connector(engine, {CLUSTER.label: url}, {CLUSTER.label: 2}, cluster.host)
    run.bench.run()
    return run


def test_a_lost_worker_fails_its_block_and_the_replay_goes_on() -> None:
    cluster = Cluster(2, 2, 1, 2)
    cluster.query = lambda sql: None  # type: ignore[method-assign]  # a cluster without queries
    run = replay(cluster)
    assert [(one.block, one.error) for one in run.of(BlockFailed)] == [
        (2, "1 worker instance left, but 2 when the run began")
    ]
    assert [one.block for one in run.of(PassDone)] == [0, 1]
    assert run.of(RunEnd)[0].status == "complete"


def test_a_query_that_fails_as_a_worker_is_lost_may_be_innocent() -> None:
    run = replay(Cluster(2, 1, 2))
    assert [one.block for one in run.of(BlockFailed)] == [0]
    assert [one.block for one in run.of(QueryFailed)] == [1], "it fails again"


def test_the_error_of_a_query_is_kept_without_the_password() -> None:
    run = replay(Cluster(2))
    assert [one.error for one in run.of(QueryFailed)] == ["no column wrong for ann:***"]
    assert [one.block for one in run.of(PassDone)] == [0, 1, 2]
