"""What a report calls a bench."""

from __future__ import annotations

import pytest

from atoll.bench.analysis import summarise
from atoll.report.bench.verdicts import title
from tests.parts.bench import WIM, header, lines, results


@pytest.mark.parametrize(
    ("suite", "scale_factor", "said"),
    [
        ("jcch", 1.0, "JCC-H at scale factor 1"),
        ("jcch:7", 0.1, "JCC-H (seed 7) at scale factor 0.1"),
        ("tpch:joins", 1.0, "TPC-H (joins) at scale factor 1"),
        ("tpcds", 10.0, "TPC-DS at scale factor 10"),
        ("tpch", None, "SQL from tpch"),
    ],
)
def test_the_title_names_suite_seed_and_scale_factor(
    suite: str, scale_factor: float | None, said: str
) -> None:
    head = header(WIM, suite=suite, scale_factor=scale_factor)
    assert title(summarise(results(lines((WIM,), 1), head))) == said
