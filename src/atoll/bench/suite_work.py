"""A suite's queries for the bench, in each engine's dialect, and the check of their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from atoll.bench.files import Files
from atoll.bench.first_answers import FirstAnswers
from atoll.bench.results import Results
from atoll.engines.api import Progress, QueryResult
from atoll.engines.facts import STANDARD_SQL
from atoll.suites.base import Answer, DataSet, Suite
from atoll.suites.compare import compare
from atoll.suites.own import Own

Texts = Mapping[str, Mapping[str, str]]  # engine -> query -> SQL


@dataclass(frozen=True, slots=True)
class SuiteWork:
    """The `atoll.bench.api.Work` of a suite, whose right answers are known."""

    texts: Texts
    answers: Mapping[str, Answer]
    files: Files
    differing: Literal["wrong"] = "wrong"

    def sql(self, engine: str, query: str) -> str:
        return self.texts[engine][query]

    def only_counted(self, query: str) -> bool:
        return self.answers[query].only_counted

    def check(self, query: str, result: QueryResult) -> str | None:
        return compare(result, self.answers[query])

    def require_unchanged(self) -> None:
        self.files.require_unchanged()

    def digest(self, query: str, result: QueryResult) -> str:
        return ""

    def recall(self, earlier: Results) -> None:
        return None

    def drop_from_cache(self) -> float | None:
        return self.files.drop_from_cache()


def texts_of(suite: Suite, engines: Iterable[str], queries: Sequence[str]) -> Texts:
    """Raises UsageError for a query of the user's own that lacks the text for an engine, or for
    the reference."""
    if not isinstance(suite, Own):
        return {name: suite.queries(name) for name in engines}
    if suite.knows_answers:
        for query in queries:
            suite.reference_text(query)
    return {name: {query: suite.text(query, name) for query in queries} for name in engines}


def work_of(
    suite: Suite, texts: Texts, queries: Sequence[str], data: DataSet, progress: Progress
) -> SuiteWork | FirstAnswers:
    """Raises UsageError for a query of the user's own that the reference refuses."""
    paths = tuple(str(file) for file in data.files.values())
    files = Files.watching(paths) if isinstance(suite, Own) else Files(paths)
    if isinstance(suite, Own) and not suite.knows_answers:
        return FirstAnswers(texts, STANDARD_SQL, files)
    answers: dict[str, Answer] = {}
    for number, query in enumerate(queries):
        progress(f"computing the answer to {query}", number / len(queries))
        answers[query] = suite.expected(query, data)
    return SuiteWork(texts, answers, files)


def notes_on(work: SuiteWork | FirstAnswers, queries: Sequence[str]) -> tuple[str, ...]:
    """What the check of the answers cannot find."""
    counted = [query for query in queries if work.only_counted(query)]
    if not counted:
        return ()
    return (
        f"only the number of rows is checked of {', '.join(counted)}: no column of the result "
        "tells which rows the LIMIT keeps",
    )
