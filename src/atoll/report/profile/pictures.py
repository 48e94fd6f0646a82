"""All pictures of a profile, in the order in which a reader asks: how the cores lie, then memory,
then caches, then what software sees. Pure."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from atoll.infer.relations import relations
from atoll.report.profile import charts
from atoll.report.profile.heat import node_picture, pair_picture
from atoll.report.svg.picture import Picture, document
from atoll.schema.profile import Profile


class Chapter(NamedTuple):
    title: str
    pictures: list[Picture]


def profile_svg(profile: Profile) -> Markup:
    """Every picture in one file, below each other."""
    found = [picture for chapter in chapters(profile) for picture in chapter.pictures]
    return document(found, f"Measured profile of {profile.machine_title}")


def chapters(profile: Profile) -> list[Chapter]:
    """Chapters that have a picture."""
    inference = profile.inference
    pairs: list[Picture | None] = []
    for matrix, title in (
        (profile.core_latency_cas_ns, "Core-to-core latency, compare-and-swap"),
        (profile.core_latency_store_ns, "Core-to-core latency, store and load"),
    ):
        if matrix is not None:
            axes = ("home of the line (PU)", "other PU")
            pairs.append(pair_picture(matrix, inference, title=title, unit="ns", axes=axes))
    latency = profile.core_latency_cas_ns or profile.core_latency_store_ns
    found = relations(latency, inference)
    pairs.append(charts.cdf_picture([("", found)], "Distribution of core-to-core latency"))
    if profile.core_bandwidth_gbs is not None:
        axes = ("producer, and home of the buffer (PU)", "consumer (PU)")
        pairs.append(
            pair_picture(profile.core_bandwidth_gbs, inference,
                         title="Core-to-core bandwidth", unit="GB/s", axes=axes)
        )  # fmt: skip
    memory = [
        node_picture(profile.nodes) if profile.nodes else None,
        charts.loaded_picture(profile.loaded),
        charts.stream_picture(profile.stream),
    ]
    software = [
        *(charts.sharing_picture(one) for one in profile.sharing),
        charts.churn_picture(profile.churn),
    ]
    named = (
        ("Cores", pairs),
        ("Memory", memory),
        ("Caches", list(charts.cache_pictures(profile.caches))),
        ("What software sees", software),
    )
    drawn = [Chapter(title, [one for one in some if one is not None]) for title, some in named]
    return [chapter for chapter in drawn if chapter.pictures]
