"""A profile as SVG, as a page and in the terminal: complete, alone, escaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.report.profile.findings import EMULATED
from atoll.report.profile.page import profile_html
from atoll.report.profile.pictures import chapters, profile_svg
from atoll.report.profile.text import profile_text
from atoll.schema.profile import Profile
from tests.parts import profiles
from tests.parts.profiles import MADE
from tests.parts.terminal import printed

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=sorted(MADE))
def profile(request: pytest.FixtureRequest) -> Profile:
    return MADE[request.param]


def shown(profile: Profile, *, bare: bool = False) -> str:
    return printed(profile_text(profile, colour=False, ascii_only=bare))


def test_svg_is_well_formed_and_stands_alone(profile: Profile) -> None:
    text = str(profile_svg(profile))
    root = ElementTree.fromstring(text)
    assert not root.findall(f".//{SVG}script")
    assert not re.search(r'(href|src)="(?!data:image/png;base64,)', text)
    drawn = re.sub(r"base64,[^\"]*", "", text)
    assert not re.search(r"\b(nan|inf|None)\b", drawn)


def test_page_asks_for_nothing_and_has_no_script(profile: Profile) -> None:
    page = profile_html(profile)
    assert "<script" not in page and "default-src 'none'" in page
    assert not re.search(r'(src|href)="http', page)


def test_text_fits_80_columns(profile: Profile) -> None:
    for bare in (False, True):
        lines = shown(profile, bare=bare).splitlines()
        assert max(map(len, lines)) <= 80
    assert shown(profile, bare=True).replace("×", "x").isascii()


def test_emulated_is_loud_everywhere() -> None:
    one = MADE["one CPU"]
    assert EMULATED in profile_html(one) and "measured</span>" not in profile_html(one)
    assert "EMULATED" in shown(one)
    assert EMULATED not in profile_html(MADE["graviton"])


def test_text_shows_what_is_missing_and_what_did_not_settle() -> None:
    assert "core-to-core latency and bandwidth need two CPUs" in shown(MADE["one CPU"])
    text = shown(MADE["epyc"])
    assert "~198" in text and "misconfigured?" in text and "38 of" in text


def test_a_flat_machine_is_flat_in_characters_too() -> None:
    lines = shown(profiles.graviton(64)).partition("ns one way\n")[2].splitlines()
    assert "".join(lines[:32]).count("▒") == 32 * 64


def test_the_catalog_s_word_has_its_reason_and_its_source() -> None:
    for text in (shown(MADE["epyc"]), profile_html(MADE["epyc"])):
        words_ = " ".join(text.split())
        assert "NPS set for capacity?" in words_.partition("gainst the catalog")[2]
        assert "16 channels of DDR4-3200" in words_


def test_stream_marks_where_arrays_lie() -> None:
    stream = next(p for c in chapters(MADE["epyc"]) for p in c.pictures if "STREAM" in p.name)
    assert all(f">{level}</text>" in stream.body for level in ("L2", "memory"))


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1))
@settings(max_examples=15)
def test_titles_from_files_are_escaped(title: str) -> None:
    evil = f'<script>alert("x")</script>{title}\x1b[31m'
    one = MADE["one CPU"].model_copy(update={"machine_title": evil})
    assert "<script" not in profile_html(one) and "<script" not in str(profile_svg(one))
    ElementTree.fromstring(str(profile_svg(one)))
    assert "\x1b" not in shown(one) and "\x1b" not in profile_html(one)
