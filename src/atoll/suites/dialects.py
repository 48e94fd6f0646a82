"""The changes that an engine's SQL needs in the texts of a suite, and the queries it cannot run.

Few changes stand in the engine's facts (`rewrites`). Many stand in a data file, SUITE.toml, in the
folder that the facts name (`dialects`):

    [[changes]]
    reason = "ascending order puts NULLs first"
    [changes.texts]
    q2 = [["ORDER BY a", "ORDER BY a NULLS LAST"]]

    [cannot]
    q51 = "it has no FULL JOIN"

A query that needs the changes of another one names it: q17p = "tpch-joins:q17".
A run of blanks and line ends in the text to look for matches any other one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from atoll.engines import registry
from atoll.engines.facts import Rewrites, facts_of
from atoll.errors import EngineFailed, UsageError
from atoll.schema.base import Record, what_is_wrong


class Changes(Record):
    """Changes with the same reason."""

    reason: str = Field(min_length=1)
    # query -> pairs: the text to look for, its replacement; or 'SUITE:QUERY', which has them
    texts: dict[str, list[tuple[str, str]] | str]


class DialectFile(Record):
    changes: tuple[Changes, ...] = ()
    cannot: dict[str, str] = Field(default_factory=dict)  # query -> why the engine cannot run it


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an engine needs of one suite."""

    engine: str
    steps: Sequence[Rewrites]  # in their order
    cannot: Mapping[str, str]

    def texts(self, standard: Mapping[str, str]) -> dict[str, str]:
        """The texts in the engine's dialect, without the queries that it cannot run.

        Raises EngineFailed if a change finds nothing to replace: the texts have changed, so the
        engine's package must be looked at again.
        """
        done = {query: text for query, text in standard.items() if query not in self.cannot}
        for rewrites in self.steps:
            for query, pairs in rewrites.items():
                for old, new in pairs:
                    done[query] = self._changed(query, done.get(query, ""), old, new)
        return done

    def _changed(self, query: str, text: str, old: str, new: str) -> str:
        pattern = r"\s+".join(map(re.escape, old.split()))
        changed, count = re.subn(pattern, lambda _: new, text)
        if not count:
            raise EngineFailed(
                f"engine {self.engine!r}: its rewrite of {query} looks for {old!r}, which the "
                "query does not contain; mend the rewrites in the engine's package"
            )
        return changed


def dialect_of(engine: str, suite: str) -> Dialect:
    """Raises EngineFailed for a folder that is missing, or a data file that cannot be read."""
    facts = facts_of(registry.get(engine))
    steps: list[Rewrites] = [facts.rewrites.get(suite, {})]
    cannot: Mapping[str, str] = {}
    if facts.dialects is not None and not facts.dialects.is_dir():
        raise EngineFailed(
            f"engine {engine!r}: its folder {facts.dialects} is missing; install its package again"
        )
    if facts.dialects is not None and (path := facts.dialects / f"{suite}.toml").exists():
        found = _read(path)
        steps += [
            {query: _pairs(path, named) for query, named in changes.texts.items()}
            for changes in found.changes
        ]
        cannot = found.cannot
    return Dialect(engine, steps, cannot)


def without_impossible(
    queries: Sequence[str], suite: str, engines: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """The queries that all engines can run, and a note for every engine that cannot run some.

    Raises UsageError if no query is left.
    """
    notes: list[str] = []
    impossible: set[str] = set()
    for engine in engines:
        cannot = {
            query: why
            for query, why in dialect_of(engine, suite).cannot.items()
            if query in queries
        }
        impossible |= cannot.keys()
        if cannot:
            reasons = "; ".join(f"{query}: {why}" for query, why in cannot.items())
            notes.append(f"left out, because {engine} cannot run them: {reasons}")
    left = tuple(query for query in queries if query not in impossible)
    if not left:
        raise UsageError(f"no query of {suite} is left: {notes[0]}")
    return left, notes


def _pairs(path: Path, named: list[tuple[str, str]] | str) -> list[tuple[str, str]]:
    """What a file at `path` says of a query. Raises EngineFailed."""
    if not isinstance(named, str):
        return named
    suite, _, query = named.partition(":")
    other = path.with_name(f"{suite}.toml")
    found = [one.texts[query] for one in _read(other).changes if query in one.texts]
    if not found:
        raise EngineFailed(f"{path}: names {named}, but {other} has no changes of {query}")
    return [pair for pairs in found for pair in _pairs(other, pairs)]


def _read(path: Path) -> DialectFile:
    try:
        return DialectFile.model_validate(tomllib.loads(path.read_text("utf-8")))
    except ValidationError as fault:
        raise EngineFailed(f"{path}: {what_is_wrong(fault)}") from None
    except (OSError, ValueError) as fault:
        raise EngineFailed(f"{path}: cannot be read ({fault})") from None
