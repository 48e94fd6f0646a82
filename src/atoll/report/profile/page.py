"""A profile as one HTML file: no script, no network, light and dark.

What the machine is comes first, in words; then what is to be doubted, then the pictures, then all
figures as tables. The template escapes all text; only the SVG made by this package goes in as it
is.
"""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup

from atoll.report.profile import words
from atoll.report.profile.pictures import chapters
from atoll.report.svg.picture import document
from atoll.schema.profile import Profile
from atoll.schema.text import printable


def profile_html(profile: Profile) -> str:
    """The whole page."""
    return page(
        "profile.html.j2",
        p=profile,
        headline=words.headline(profile),
        emulated=words.EMULATED if profile.emulated else "",
        doubts=[line for line in words.doubts(profile) if line != words.EMULATED],
        chapters=[
            (chapter.title, [document([one], one.name) for one in chapter.pictures])
            for chapter in chapters(profile)
        ],
        reasons=profile.inference.reasons if profile.inference else (),
        left_out=words.left_out(profile),
        tables=[entry for entry in _tables(profile) if entry[2]],
        environment=words.environment_rows(profile),
    )


def page(template: str, **values: object) -> str:
    """A template of this package, all text escaped."""
    return _templates().get_template(template).render(**values)


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("atoll.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _printable(value: object) -> object:
    """Names come from files; a page need not carry what steers a terminal that shows its source."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _tables(profile: Profile) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    return [
        ("Core-to-core latency, compare-and-swap", words.PAIR_COLUMNS,
         words.pair_rows(profile.core_latency_cas_ns, profile, "ns")),
        ("Core-to-core latency, store and load", words.PAIR_COLUMNS,
         words.pair_rows(profile.core_latency_store_ns, profile, "ns")),
        ("Core-to-core bandwidth", words.PAIR_COLUMNS,
         words.pair_rows(profile.core_bandwidth_gbs, profile, "GB/s")),
        ("Memory latency under load", words.LOADED_COLUMNS, words.loaded_rows(profile)),
        ("Caches", words.CACHE_COLUMNS, words.cache_rows(profile)),
        ("STREAM, the best of each level", words.STREAM_COLUMNS, words.stream_rows(profile)),
        ("Local against distributed cache", words.SHARING_COLUMNS, words.sharing_rows(profile)),
        ("Allocators under churn: ns an operation by threads, memory over what was asked for",
         *words.churn_table(profile)),
        ("Against the catalog", words.EXPECTED_COLUMNS, words.expected_rows(profile)),
    ]  # fmt: skip
