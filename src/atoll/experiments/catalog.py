"""Reads the files of the experiments, which are part of the package."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from atoll.errors import UsageError
from atoll.experiments.claims import parse_claim, parse_term
from atoll.schema.base import what_is_wrong
from atoll.schema.experiment import Experiment

FOLDER = Path(__file__).parent / "files"
_PAPERS = (
    "olap-on-chiplets",
    "numa-distributed-engines",
    "numa-query-tuning",
    "arcas-runtime",
    "query-plan-deployment-poster",
)


@cache
def experiments() -> tuple[Experiment, ...]:
    """All of them, paper by paper: figures by number, then tables."""
    found = [read_experiment(path) for path in FOLDER.glob("*.toml")]
    return tuple(sorted(found, key=_order))


def get(name: str) -> Experiment:
    """Raises UsageError."""
    path = {one.stem: one for one in FOLDER.glob("*.toml")}.get(name)
    if path is None:
        raise UsageError(f"no experiment {name!r}; 'atoll experiment list' has their names")
    return read_experiment(path)


def read_experiment(path: Path) -> Experiment:
    """Raises UsageError for a file that is wrong, its terms and its claim included."""
    try:
        found = Experiment.model_validate(tomllib.loads(path.read_text("utf-8")))
        for one in found.published:
            parse_term(one.term)
        parse_claim(found.check.shape)
    except ValidationError as fault:
        raise UsageError(f"{path.name}: {what_is_wrong(fault)}") from None
    except (OSError, ValueError, UsageError) as fault:
        raise UsageError(f"{path.name}: {fault}") from None
    if found.name != path.stem:
        raise UsageError(f"{path.name}: is named {found.name!r} inside; make the names equal")
    return found


def _order(one: Experiment) -> tuple[int, bool, int, str]:
    kind, _, number = one.figure.partition(" ")
    digits = "".join(filter(str.isdigit, number))
    return _PAPERS.index(one.paper), kind != "Fig.", int(digits or 1), number
