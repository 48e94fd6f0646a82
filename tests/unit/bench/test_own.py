"""A bench of the user's own suite: files that change, and answers that are not determined."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atoll.bench.analysis import summarise
from atoll.bench.axes import Axis, Grid
from atoll.bench.files import Files
from atoll.bench.job import BenchRequest, Length, make_job
from atoll.errors import UsageError
from atoll.schema.results import Line, QueryTime
from tests.parts.bench import WIM, header, lines, results
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


def test_queries_are_chosen_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "q1.sql").write_text("select 1")
    request = BenchRequest(
        targets=("duckdb",),
        suite=str(tmp_path),
        scale_factor=0.1,
        grid=Grid((Axis("policy", ("wim",)),)),
        queries="q2",
        length=Length(),
        query_limit_s=60,
        command="atoll bench duckdb",
    )
    with fails(UsageError, query="q2", known="q1"):
        make_job(request, host=FakeHost(), machine=milan(), progress=lambda what, part: None)


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
