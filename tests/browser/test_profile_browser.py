"""A profile's page in headless Chromium, light and dark: its pictures show, it loads nothing.

The profiles are synthetic. Screenshots go to $ATOLL_SCREENSHOTS, or else to the test's folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from atoll.infer.compare import compare_profiles
from atoll.report.profile.compare import compare_html
from atoll.report.profile.page import profile_html
from tests.browser.pages import NARROW, WIDE, get_log, requests, show
from tests.parts import profiles


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("profiles")
    a, b = profiles.epyc(2, 4, 3), profiles.epyc(1, 8, 4)
    texts = {
        "profile": profile_html(a),
        "profile-flat": profile_html(profiles.graviton(16)),
        "profile-compare": compare_html(compare_profiles(a, b), a, b),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize(
    ("name", "maps"), [("profile", 3), ("profile-flat", 2), ("profile-compare", 4)]
)
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_profile_page(
    browser: webdriver.Chrome,
    pages: dict[str, Path],
    screenshots: Path,
    scheme: str,
    width: int,
    name: str,
    maps: int,
) -> None:
    show(browser, pages[name], scheme, width)

    found = browser.find_elements(By.CSS_SELECTOR, ".picture svg image")
    assert len(found) == maps
    assert all(one.rect["width"] > 100 and one.rect["height"] > 100 for one in found)
    for picture in browser.find_elements(By.CSS_SELECTOR, ".picture svg"):
        assert picture.rect["width"] > 200
        words = picture.find_element(By.CSS_SELECTOR, "text.title")
        fill = words.value_of_css_property("fill")
        assert (int(fill.partition("(")[2].split(",")[0]) < 128) == (scheme == "light")

    # The page itself never scrolls sideways; wide tables and charts do so in their own box.
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert [entry for entry in get_log(browser, "browser") if entry["level"] == "SEVERE"] == []
    assert [url for url in requests(browser) if not url.startswith(("file:", "data:"))] == []

    target = screenshots / f"{name}-{scheme}-{width}.png"
    assert browser.save_screenshot(str(target))
    print(f"screenshot: {target}")
