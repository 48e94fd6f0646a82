"""Answers whose right values are unknown: each is compared with the first one to its query.

The first one of this process, whichever entrant gave it. After a resume, that one is compared with
the digest in the results file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from atoll.bench.files import Files
from atoll.bench.results import Results
from atoll.engines.api import QueryResult
from atoll.engines.sql.types import Kind, kind_of
from atoll.schema.results import QueryTime
from atoll.suites.base import Answer
from atoll.suites.compare import compare, plain
from atoll.suites.folder import bare
from atoll.suites.ordering import is_only_counted, ordering_of


@dataclass(frozen=True, slots=True)
class FirstAnswers:
    """See `atoll.bench.api.Work`."""

    texts: Mapping[str, Mapping[str, str]]  # engine -> query -> SQL
    comments_and_quotes: str  # see `EngineFacts`
    files: Files = field(default_factory=Files)
    first: dict[str, QueryResult] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    differing: Literal["changed"] = "changed"

    def sql(self, engine: str, query: str) -> str:
        return self.texts[engine][query]

    def only_counted(self, query: str) -> bool:
        return is_only_counted(bare(self._any_text(query), self.comments_and_quotes))

    def check(self, query: str, result: QueryResult) -> str | None:
        first = self.first.setdefault(query, result)
        if first is result:
            found = self.digest(query, result)
            known = self.digests.setdefault(query, found)
            return None if known == found else "it changed while the run was stopped"
        kinds, before = _kinds(result), _kinds(first)
        if kinds != before:
            return f"its columns are {', '.join(kinds)}, and were {', '.join(before)}"
        order, cut = self._order(query, first)
        return compare(result, Answer(first.rows, order, open_end=cut))

    def require_unchanged(self) -> None:
        self.files.require_unchanged()

    def digest(self, query: str, result: QueryResult) -> str:
        order, cut = self._order(query, result)
        return digest_of(result, order if cut else range(len(result.columns)))

    def _order(self, query: str, result: QueryResult) -> tuple[tuple[int, ...], bool]:
        """The columns that order the result, and whether a LIMIT may have cut between rows that are
        equal in these columns. The engine may then return any of those rows."""
        words = bare(self._any_text(query), self.comments_and_quotes)
        order, limit = ordering_of(words, [column.name for column in result.columns])
        return order, limit is not None and len(result.rows) == limit

    def _any_text(self, query: str) -> str:
        """For its order, which is the same in all dialects."""
        return next(texts[query] for texts in self.texts.values())

    def drop_from_cache(self) -> float | None:
        return self.files.drop_from_cache()

    def recall(self, earlier: Results) -> None:
        for line in earlier.lines:
            if isinstance(line, QueryTime) and line.digest:
                self.digests.setdefault(line.query, line.digest)


def _kinds(result: QueryResult) -> list[str]:
    return [kind_of(column.type).value for column in result.columns]


def digest_of(result: QueryResult, places: Sequence[int]) -> str:
    """A digest of the number of rows and the values of those columns, in any order of rows.

    Columns of floats are left out.
    """
    exact = [place for place in places if kind_of(result.columns[place].type) is not Kind.FLOAT]
    types = {place: result.columns[place].type for place in exact}
    rows = sorted(
        repr([plain(row[place], type_name) for place, type_name in types.items()])
        for row in result.rows
    )
    digest = hashlib.sha256(f"{len(rows)}\n".encode())
    for row in rows:
        digest.update(row.encode() + b"\n")
    return digest.hexdigest()[:16]
