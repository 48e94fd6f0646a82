"""Where threads and pages were, over an entrant's finished measured passes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from atoll.schema.results import Line, PassDone, PassPlaces
from atoll.schema.summary import PlacesSummary


def places_summary(lines: Sequence[Line], label: str) -> PlacesSummary | None:
    """None if no finished pass was watched. A mean is over the passes that know the figure."""
    done = {line.block for line in lines if isinstance(line, PassDone) and line.label == label}
    passes = [
        line.places
        for line in lines
        if isinstance(line, PassPlaces) and line.label == label and line.block in done
    ]
    if not passes:
        return None

    def mean(name: str) -> float | None:
        known = [value for one in passes if (value := getattr(one, name)) is not None]
        return fmean(known) if known else None

    return PlacesSummary.model_validate(
        {"passes": len(passes)}
        | {name: mean(name) for name in PlacesSummary.model_fields if name != "passes"}
    )
