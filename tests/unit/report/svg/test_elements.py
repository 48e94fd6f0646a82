"""SVG documents: one palette in both themes, text escaped, nothing from outside."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

from hypothesis import given
from hypothesis import strategies as st

from atoll.report.svg.elements import Picture, document, element, inline, rect, text
from atoll.report.svg.palette import palette_css, picture_css

SVG = "{http://www.w3.org/2000/svg}"


def test_pages_and_pictures_have_the_same_colours_in_both_themes() -> None:
    themes = [
        dict(re.findall(r"--([\w-]+):(#\w{6})", part)) for part in palette_css().split("@media")
    ]
    light, dark = picture_css().split("@media")
    assert len(themes) == 2 and themes[0].keys() == themes[1].keys()
    for css, theme in zip((light, dark), themes, strict=True):
        used = set(re.findall(r"#\w{6}", css)) - {"#000000", "#ffffff"}
        assert used <= set(theme.values())


def test_a_document_stands_alone_and_a_part_of_a_page_has_no_style() -> None:
    pictures = [Picture("one", 100, 40, rect(0, 0, 9, 9, "core")), Picture("two", 50, 20, "")]
    root = ElementTree.fromstring(document(pictures, "both"))
    assert (root.get("width"), root.get("height")) == ("100", "78")
    assert [group.get("aria-label") for group in root.iter(f"{SVG}g")] == ["one", "two"]
    assert root.find(f"{SVG}style") is not None
    assert "<style" not in inline(pictures[0])


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"])))
def test_any_text_is_well_formed(words: str) -> None:
    parts = text(0, 0, words) + rect(0, 0, 1, 1, "core", words) + element("g", "", data_x=words)
    root = ElementTree.fromstring(inline(Picture(words, 1, 1, parts)))
    assert not root.findall(f".//{SVG}script")
