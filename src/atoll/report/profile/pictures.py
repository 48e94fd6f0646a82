"""All pictures of a profile: cores, memory, caches, then what software sees. Pure."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from atoll.infer.relations import relations
from atoll.report.numbers import Unit
from atoll.report.profile import charts
from atoll.report.profile.heat import node_picture, pair_picture
from atoll.report.svg.elements import Picture, document
from atoll.schema.profile import PairMatrix, Profile

LATENCY_AXES = ("home of the line (PU)", "other PU")
BANDWIDTH_AXES = ("producer, and home of the buffer (PU)", "consumer (PU)")


class Chapter(NamedTuple):
    title: str
    pictures: list[Picture]


def profile_svg(profile: Profile) -> Markup:
    """Every picture in one file, one below the other."""
    pictures = [picture for chapter in chapters(profile) for picture in chapter.pictures]
    return document(pictures, f"Measured profile of {profile.machine_title}")


def chapters(profile: Profile) -> list[Chapter]:
    """Chapters that have a picture."""
    named: tuple[tuple[str, list[Picture | None]], ...] = (
        ("Cores", [*core_pictures(profile)]),
        (
            "Memory",
            [
                node_picture(profile.nodes) if profile.nodes else None,
                charts.loaded_picture(profile.loaded),
                charts.stream_picture(profile.stream),
            ],
        ),
        ("Caches", [*charts.cache_pictures(profile.caches)]),
        (
            "What software sees",
            [
                *(charts.sharing_picture(sharing) for sharing in profile.sharing),
                charts.churn_picture(profile.churn),
            ],
        ),
    )
    drawn = [Chapter(title, [one for one in pictures if one]) for title, pictures in named]
    return [chapter for chapter in drawn if chapter.pictures]


def core_pictures(profile: Profile) -> list[Picture]:
    """The maps of all pairs of PUs, and the distribution of latencies."""

    def heat_map(
        matrix: PairMatrix | None, title: str, unit: Unit, axes: tuple[str, str]
    ) -> Picture | None:
        if matrix is None:
            return None
        return pair_picture(matrix, profile.inference, title=title, unit=unit, axes=axes)

    compare_and_swap, store = profile.core_latency_cas_ns, profile.core_latency_store_ns
    kinds = relations(compare_and_swap or store, profile.inference)
    pictures = [
        heat_map(compare_and_swap, "Core-to-core latency, compare-and-swap", "ns", LATENCY_AXES),
        heat_map(store, "Core-to-core latency, store and load", "ns", LATENCY_AXES),
        charts.cdf_picture([("", kinds)], "Distribution of core-to-core latency"),
        heat_map(profile.core_bandwidth_gbs, "Core-to-core bandwidth", "GB/s", BANDWIDTH_AXES),
    ]
    return [picture for picture in pictures if picture]
