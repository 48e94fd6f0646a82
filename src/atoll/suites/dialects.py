"""Changes that an engine's SQL needs in the texts of a suite. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from atoll.engines.facts import Rewrites
from atoll.errors import EngineFailed


def in_dialect(texts: Mapping[str, str], engine: str, rewrites: Rewrites) -> dict[str, str]:
    """The texts with the engine's rewrites applied.

    Raises EngineFailed if a rewrite finds nothing to replace: the texts have changed, so the
    engine's package must be looked at again.
    """
    done = dict(texts)
    for query, steps in rewrites.items():
        for old, new in steps:
            if old not in done.get(query, ""):
                raise EngineFailed(
                    f"engine {engine!r}: its rewrite of {query} looks for {old!r}, which the query "
                    "does not contain; mend the rewrites in the engine's facts"
                )
            done[query] = done[query].replace(old, new)
    return done
