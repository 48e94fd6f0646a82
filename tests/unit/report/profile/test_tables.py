"""The tables of a profile."""

from __future__ import annotations

import pytest

from atoll.report.profile import tables
from atoll.schema.profile import SharingPoint
from tests.parts import profiles
from tests.parts.profiles import MADE


@pytest.mark.parametrize(
    ("spread_over_local", "so"),
    [
        ((0.6, 0.6, 1.001), "together"),
        ((0.99, 2.0, 1.0), "spread"),
        ((1.0, 1.01), "alike"),
        ((0.5, 2.0, 0.5), "varies"),
    ],
)
def test_without_a_crossing_all_points_speak(spread_over_local: list[float], so: str) -> None:
    made = MADE["epyc"].sharing[0]
    points = tuple(
        SharingPoint(
            vector_bytes=1024 << place,
            local_gbs=profiles.figure(10.0),
            distributed_gbs=profiles.figure(10.0 * ratio),
        )
        for place, ratio in enumerate(spread_over_local)
    )
    one = made.model_copy(update={"points": points, "crossing_bytes": None})
    (row,) = tables.sharing_rows(MADE["epyc"].model_copy(update={"sharing": (one,)}))
    assert row[2] == "none" and row[-1] == so


def test_every_row_of_stream_has_its_level_and_arrays() -> None:
    assert all(row[3] and row[4] for row in tables.stream_rows(MADE["epyc"]))
