"""Sentences about a profile: the machine, and reasons to doubt a figure."""

from __future__ import annotations

from atoll.report.profile import findings
from atoll.schema.profile import Notice
from tests.parts.profiles import MADE


def test_headline_says_what_the_machine_is() -> None:
    shape, memory, caches = findings.headline(MADE["epyc"])
    assert "2 packages, 8 chiplets of 3 cores" in shape and "confidence 0.97" in shape
    assert "22.7 ns within a chiplet" in shape and "across chiplets" in shape
    assert "96 ns to own node" in memory and "1.5 GiB" in memory
    assert "L3 28.8 MiB" in caches
    (flat,) = findings.headline(MADE["graviton"])
    assert "no chiplets or packages" in flat
    (tiles,) = findings.headline(MADE["sapphire rapids"])
    assert "bandwidth alone" in tiles and "12.5 GB/s within a chiplet" in tiles
    assert "ns between any two" in tiles


def test_a_disturbance_is_listed_once() -> None:
    notice = Notice(code="disturbed", message="latency: other processes took 30 % of the CPU time")
    without, noticed = (
        MADE["epyc"].model_copy(update={"notices": some}) for some in ((), (notice,))
    )  # fmt: skip
    assert sum("other processes" in line for line in findings.doubts(without)) == 1
    assert sum("other processes" in line for line in findings.doubts(noticed)) == 1


def test_unsettled_figures_are_counted() -> None:
    loose, whole = findings.unsettled(MADE["epyc"])
    assert loose == 20 + 2 + 16 and whole > 3 * 48 * 47
