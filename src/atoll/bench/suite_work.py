"""The queries of a suite and their right answers, for a bench."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from atoll.bench.files import Files
from atoll.bench.results import Results
from atoll.engines.api import QueryResult
from atoll.suites.base import Answer
from atoll.suites.compare import compare


@dataclass(frozen=True, slots=True)
class SuiteWork:
    """The `atoll.bench.api.Work` of a suite, whose right answers are known."""

    texts: Mapping[str, Mapping[str, str]]  # engine -> query -> SQL
    answers: Mapping[str, Answer]
    files: Files
    differing: Literal["wrong"] = "wrong"

    def sql(self, engine: str, query: str) -> str:
        return self.texts[engine][query]

    def check(self, query: str, result: QueryResult) -> str | None:
        return compare(result, self.answers[query])

    def digest(self, query: str, result: QueryResult) -> str:
        return ""

    def recall(self, earlier: Results) -> None:
        return None

    def drop_from_cache(self) -> float | None:
        return self.files.drop_from_cache()
