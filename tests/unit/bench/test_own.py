"""A bench of the user's own suite: files that change, and answers that are not determined."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from atoll.bench.analysis import summarise
from atoll.bench.axes import Axis, Grid
from atoll.bench.files import Files
from atoll.bench.first_answers import FirstAnswers
from atoll.bench.job import BenchRequest, Job, Length, make_job
from atoll.bench.suite_work import SuiteWork
from atoll.engines.facts import STANDARD_SQL
from atoll.errors import EngineFailed, UsageError
from atoll.schema.results import Line, QueryFailed, QueryTime, RunEnd
from atoll.suites.base import Answer
from tests.parts.bench import WIM, Run, header, lines, result, results
from tests.parts.fake_host import FakeHost
from tests.parts.faults import fails
from tests.parts.machines import milan


def test_a_file_that_changes_while_the_bench_runs_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "orders.parquet"
    path.write_text("PAR1")
    files = Files.watching((str(path),))
    assert files.drop_from_cache() is not None
    os.utime(path, ns=(1, 1))
    with fails(UsageError, path=path):
        files.drop_from_cache()
    assert Files().drop_from_cache() is None


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("refused", [True, False])
@pytest.mark.parametrize("gone", [True, False])
def test_other_data_is_not_the_engines_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool, refused: bool, gone: bool
) -> None:
    """In the last deployment: a query that is refused, or an answer that differs."""
    path = tmp_path / "orders.parquet"
    path.write_text("PAR1")
    texts, files = {"spark": {"q1": "q1", "q6": "q6"}}, Files.watching((str(path),))
    run = Run(header(blocks_asked=1))
    run.bench.work = (
        SuiteWork(texts, dict.fromkeys(("q1", "q6"), Answer([(0,)], ())), files)
        if known
        else FirstAnswers(texts, STANDARD_SQL, files)
    )

    def trouble(label: str, sql: str) -> None:
        if label == "spark/wic" and sql == "q6":
            if gone:
                path.unlink()
            else:
                os.utime(path, ns=(1, 1))
            if refused:
                raise EngineFailed("no magic bytes at the end of the file")
            monkeypatch.setattr("tests.parts.bench.result", lambda **more: result(2))

    run.engines.trouble = trouble
    with fails(UsageError, path=path):
        run.bench.run()
    assert not run.of(QueryFailed) and {one.answer for one in run.of(QueryTime)} == {"ok"}
    (end,) = run.of(RunEnd)
    assert end.status == "stopped" and "changed while the bench ran" in end.reason


def make(folder: Path, queries: str | None = None, engine: str = "duckdb") -> Job:
    request = BenchRequest(
        targets=(engine,),
        suite=str(folder),
        scale_factor=0.1,
        grid=Grid((Axis("policy", ("wim",)),)),
        queries=queries,
        length=Length(),
        query_limit_s=60,
        command="atoll bench duckdb",
    )
    return make_job(request, host=FakeHost(), machine=milan(), progress=lambda what, part: None)


def test_queries_are_chosen_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "q1.sql").write_text("select 1")
    with fails(UsageError, query="q2", known="q1"):
        make(tmp_path, "q2")


def test_only_the_chosen_queries_need_a_text(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("select 1")
    (tmp_path / "b.spark.sql").write_text("select 2")
    assert make(tmp_path, "a").header.queries == ("a",)
    with fails(UsageError, folder=tmp_path, query="b", engine="duckdb"):
        make(tmp_path)


def test_a_missing_text_is_told_before_the_data_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.spark.sql").write_text("select 1")
    (tmp_path / "suite.toml").write_text('[tables]\nt = "missing.parquet"\n')
    with fails(UsageError, folder=tmp_path, query="a", file="suite.toml"):
        make(tmp_path)


def test_a_folder_with_the_name_of_a_suite_is_the_users(tmp_path: Path) -> None:
    """MariaDB cannot run q51 of TPC-DS."""
    folder = tmp_path / "tpcds"
    folder.mkdir()
    (folder / "q51.sql").write_text("select 1")
    with fails(EngineFailed, program="mariadbd"):  # on this machine without engines
        make(folder, engine="mariadb")


def test_a_name_that_ends_with_no_engine_is_noted(tmp_path: Path) -> None:
    for name in ("daily", "daily.sparc", "daily.spark"):
        (tmp_path / f"{name}.sql").write_text("select 1")
    job = make(tmp_path)
    assert job.header.queries == ("daily", "daily.sparc")
    said = "daily.sparc.sql is a query of its own, because 'sparc' is no engine"
    assert said in job.header.notes
    assert said not in make(tmp_path, "daily").header.notes


def test_an_answer_that_is_only_counted_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("select range from range(9) limit 3")
    (tmp_path / "b.sql").write_text("select range from range(9) order by range limit 3")
    said = "only the number of rows is checked of a: no column"
    assert any(note.startswith(said) for note in make(tmp_path).header.notes)
    (tmp_path / "suite.toml").write_text('[tables]\nt = "t.parquet"\n')
    with duckdb.connect() as connection:
        connection.execute(f"copy (select 1 as k) to '{tmp_path}/t.parquet' (format parquet)")
    assert any(note.startswith(said) for note in make(tmp_path).header.notes)


@pytest.mark.parametrize("answers", [("ok", "changed"), ("ok", "wrong"), ("ok", "ok")])
def test_an_entrant_that_answers_differently_twice_is_named(answers: tuple[str, str]) -> None:
    given: list[Line] = []
    for line in lines((WIM,), 2):
        if isinstance(line, QueryTime) and line.phase == "measured":
            answer = answers[line.block]
            given.append(line.model_copy(update={"answer": answer, "digest": answer}))
        else:
            given.append(line)
    summary = summarise(results(given, header(WIM, scale_factor=None, answers_known=False)))
    codes = [caution.code for caution in summary.warnings]
    assert ("answer-unstable" in codes) is (answers != ("ok", "ok"))
