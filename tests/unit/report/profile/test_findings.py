"""Sentences about a profile: the machine, and reasons to doubt a figure."""

from __future__ import annotations

from typing import Any

from atoll.report.profile import findings, tables
from atoll.report.profile.inference import inference_text
from atoll.report.profile.page import profile_html
from atoll.report.profile.text import profile_text
from atoll.schema.profile import Inference, Notice, Profile
from tests.parts.profiles import MADE
from tests.parts.terminal import printed


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


def unsettled(profile: Profile) -> Profile:
    """The same, and no figure has settled."""

    def loose(part: object) -> object:
        if isinstance(part, dict):
            loosened = {key: loose(value) for key, value in part.items()}
            return loosened | ({"settled": False} if "settled" in part else {})
        return [loose(one) for one in part] if isinstance(part, list) else part

    whole = loose(profile.model_dump(mode="json"))
    assert isinstance(whole, dict)
    for matrix in ("core_latency_cas_ns", "core_latency_store_ns", "core_bandwidth_gbs"):
        pus = profile.core_latency_cas_ns.pus if profile.core_latency_cas_ns else ()
        whole[matrix]["unsettled"] = [(i, j) for i in pus for j in pus if i != j]
    return Profile.model_validate(whole)


def test_a_figure_that_did_not_settle_keeps_its_mark_in_every_sentence() -> None:
    made = MADE["epyc"]
    for settled, wanted in ((made, 0), (unsettled(made), 1)):
        shape, memory, caches = findings.headline(settled)
        assert ("~22.7 ns within a chiplet" in shape) == wanted
        assert ("~96 ns to own node" in memory) == ("~363 GB/s triad" in memory) == wanted
        assert caches.count("~") == 3 * wanted
    loose = unsettled(made)
    for text in (printed(profile_text(loose, colour=False)), profile_html(loose)):
        for figure in ("96 ns to own node", "22.7 ns within a chiplet"):
            at = text.replace("\n", " ").index(figure)
            assert text[at - 1] == "~"
    for table in (*tables.pair_tables(loose), *tables.memory_tables(loose)):
        for name in ("median", "latency", "together", "spread"):
            if name in table.columns:
                column = table.columns.index(name)
                assert all(row[column].startswith("~") for row in table.rows), table.title


def test_a_cache_level_is_settled_if_most_of_its_points_are() -> None:
    (curve,) = MADE["epyc"].caches
    first = curve.points[0]
    assert curve.settled == (True,) * 4
    figure = first.latency_ns.model_copy(update={"settled": False})
    small = first.model_copy(update={"latency_ns": figure})
    assert curve.model_copy(update={"points": (small, *curve.points[-3:])}).settled[0] is False


def inferred(**changes: Any) -> Inference:
    plain = {"chiplets": (), "packages": (), "smt": (), "levels": (), "source": "none"}
    return Inference.model_validate({**plain, **changes})


def test_no_chiplets_and_cannot_tell_are_different_answers() -> None:
    groups = ((0, 1, 2, 3), (4, 5, 6, 7))
    cases = {
        "no chiplets (confidence 0.97)": inferred(confidence=0.97),
        "cannot tell whether there are chiplets (confidence 0.12)": inferred(confidence=0.12),
        "2 chiplets by latency (confidence 0.90)": inferred(
            confidence=0.9, chiplets=groups, source="latency"
        ),
        "cannot tell whether there are chiplets, perhaps 2 chiplets by latency (confidence 0.30)":
            inferred(confidence=0.3, chiplets=groups, source="latency"),
    }  # fmt: skip
    for words, inference in cases.items():
        assert inference_text(inference).splitlines()[0] == words
    flat = MADE["graviton"]
    for confidence, words in ((0.95, "16 cores, no chiplets"), (0.2, "16 CPUs, cannot tell")):
        inference = inferred(confidence=confidence)
        (sentence,) = findings.headline(flat.model_copy(update={"inference": inference}))
        assert sentence.startswith(words)


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
