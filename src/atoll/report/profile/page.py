"""A profile as one HTML file. Pure.

First the machine in words, then reasons to doubt a figure, then the pictures, then all figures.
"""

from __future__ import annotations

from atoll.report.pages import page
from atoll.report.profile import findings, tables
from atoll.report.profile.pictures import chapters
from atoll.schema.profile import Profile


def profile_html(profile: Profile) -> str:
    """The whole page."""
    listed = [*tables.pair_tables(profile), *tables.memory_tables(profile)]
    catalog = tables.catalog_table(profile)
    return page(
        "profile.html.j2",
        p=profile,
        headline=findings.headline(profile),
        emulated=findings.EMULATED if profile.emulated else "",
        doubts=findings.doubts(profile),
        chapters=chapters(profile),
        reasons=profile.inference.reasons if profile.inference else (),
        left_out=findings.left_out(profile),
        tables=[*listed, *([catalog] if catalog.rows else [])],
        environment=tables.profile_environment(profile),
    )
