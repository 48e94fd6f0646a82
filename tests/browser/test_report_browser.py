"""The report of a recorded bench in headless Chromium: its bars show, it loads nothing.

Screenshots go to $ATOLL_SCREENSHOTS, or else to the test's folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from atoll.bench.results import read_results
from atoll.report.bench.render import render
from atoll.schema.results import Line
from tests.browser.pages import NARROW, WIDE, get_log, requests, resize, show
from tests.parts.bench import ATOLL, DUCKDB, WIM, header, lines, ran, results, scheduler_state
from tests.parts.fills import counted_run
from tests.parts.paths import DATA

RECORDED = DATA / "bench-duckdb.jsonl"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render(read_results(RECORDED), "html"), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report(
    browser: webdriver.Chrome, page: Path, screenshots: Path, scheme: str, width: int
) -> None:
    show(browser, page, scheme, width)
    results = read_results(RECORDED)

    bars = browser.find_elements(By.CSS_SELECTOR, "rect.bar")
    assert len(bars) == len(results.header.queries) * len(results.header.entrants)
    for bar in bars:
        assert bar.rect["width"] > 1, bar.get_attribute("aria-label")
        assert bar.rect["height"] > 1
        assert bar.value_of_css_property("fill") not in ("none", "rgba(0, 0, 0, 0)")
    by_time = sorted(bars, key=lambda bar: float(bar.get_attribute("data-median-s") or 0))
    assert by_time[0].rect["width"] < by_time[-1].rect["width"]

    assert browser.find_elements(By.CSS_SELECTOR, ".times .whisker")
    assert browser.find_elements(By.CSS_SELECTOR, "[data-query='geomean'] .point")
    pictures = browser.find_elements(By.CSS_SELECTOR, ".picture svg")
    assert len(pictures) == 1 + len(results.header.entrants)
    assert all(picture.rect["width"] > 100 for picture in pictures)

    # The page itself never scrolls sideways; wide tables and charts do so in their own box.
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width

    background = browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
    red = int(background.partition("(")[2].split(",")[0])
    assert (red > 128) == (scheme == "light")

    assert [entry for entry in get_log(browser, "browser") if entry["level"] == "SEVERE"] == []
    assert [url for url in requests(browser) if not url.startswith(("file:", "data:"))] == []

    target = screenshots / f"report-{scheme}-{width}.png"
    assert browser.save_screenshot(str(target))
    assert target.stat().st_size > 10_000
    print(f"screenshot: {target}")


@pytest.fixture(scope="module")
def spreads_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two servers under Atoll's scheduler, one on eight chiplets, and DuckDB's own scheduler."""
    given: list[Line] = list(lines((DUCKDB, ATOLL), 6))
    for block in range(6):
        moving = scheduler_state(
            (0.0, 8), (3.0 + block / 10, 2), (8.9, 1), (9.3 + block / 20, 8), chiplets=8
        )
        given += [ran(block, ATOLL.label, moving), ran(block, ATOLL.label, scheduler_state(), 1)]
    path = tmp_path_factory.mktemp("report") / "spreads.html"
    path.write_text(render(results(given, header(DUCKDB, ATOLL)), "html"), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_spread_over_time(
    browser: webdriver.Chrome, spreads_page: Path, screenshots: Path, scheme: str, width: int
) -> None:
    show(browser, spreads_page, scheme, width)
    chart = browser.find_element(By.CSS_SELECTOR, ".chart.spreads")
    steps = chart.find_elements(By.CSS_SELECTOR, ".spread .step")
    assert len(steps) == 12
    for step in steps:
        assert step.rect["width"] > 100
        assert step.value_of_css_property("stroke") != "none"
        assert step.value_of_css_property("fill") == "none"
    first, second = (chart.find_elements(By.CSS_SELECTOR, f"[data-slot='{n}']") for n in (0, 1))
    assert first[0].rect["height"] > 50, "eight chiplets are far apart"
    assert second[0].rect["height"] < 5, "a spread that never changed is level"
    assert second[0].rect["y"] > first[0].rect["y"] + first[0].rect["height"]
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert [entry for entry in get_log(browser, "browser") if entry["level"] == "SEVERE"] == []
    target = screenshots / f"spreads-{scheme}-{width}.png"
    assert browser.save_screenshot(str(target))
    print(f"screenshot: {target}")


def drawn(browser: webdriver.Chrome, selector: str) -> list[dict[str, Any]]:
    """All that match, in one question: place and size, data, style, and which SVG of its class
    each is in."""
    found: list[dict[str, Any]] = browser.execute_script(
        """
        return [...document.querySelectorAll(arguments[0])].map(one => {
          const {x, y, width, height} = one.getBoundingClientRect();
          const style = getComputedStyle(one);
          const figure = one.closest('.traffic') ? '.traffic svg' : '.chart svg';
          return {x, y, width, height, ...one.dataset,
            svg: [...document.querySelectorAll(figure)].indexOf(one.closest('svg')),
            ...Object.fromEntries(['stroke', 'fill', 'stroke-width', 'break-inside'].map(
              name => [name, style.getPropertyValue(name)]))};
        });
        """,
        selector,
    )
    return found


@pytest.fixture(scope="module")
def simulated_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of 16 chiplets in two nodes, and of 32 in eight."""
    folder, found = tmp_path_factory.mktemp("report"), {}
    for name, shape in (("two-nodes", (2, 1, 8)), ("eight-nodes", (2, 4, 4))):
        found[name] = folder / f"{name}.html"
        found[name].write_text(render(counted_run(*shape), "html"), encoding="utf-8")
    return found


@pytest.mark.parametrize("name", ["two-nodes", "eight-nodes"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_simulated_traffic(
    browser: webdriver.Chrome,
    simulated_pages: dict[str, Path],
    screenshots: Path,
    scheme: str,
    width: int,
    name: str,
) -> None:
    show(browser, simulated_pages[name], scheme, width)
    wim, win, _, _ = drawn(browser, ".traffic svg")
    assert wim["width"] > 300
    beside = wim["y"] == win["y"]
    assert beside == (width == WIDE), "side by side where there is room"
    links = [link for link in drawn(browser, ".traffic path[data-lines]") if link["svg"] == 0]
    assert links
    for link in links:
        assert link["stroke"] != "none" and link["fill"] == "none"
        assert wim["x"] <= link["x"]
        assert link["x"] + link["width"] <= wim["x"] + wim["width"] + 1
    assert len({link["stroke-width"] for link in links}) > 1
    first, verdict = (
        browser.find_element(By.CSS_SELECTOR, kind).rect["y"]
        for kind in ("section.simulated", "section[aria-label='Verdict']")
    )
    assert first < verdict
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert [entry for entry in get_log(browser, "browser") if entry["level"] == "SEVERE"] == []
    target = screenshots / f"simulated-{name}-{scheme}-{width}.png"
    assert browser.save_screenshot(str(target))
    print(f"screenshot: {target}")


@pytest.mark.parametrize("name", ["two-nodes", "eight-nodes"])
def test_no_picture_of_traffic_is_cut_in_print(
    browser: webdriver.Chrome, simulated_pages: dict[str, Path], name: str
) -> None:
    """On Letter, upright."""
    width, height = 816 - 77, 1056 - 77
    resize(browser, width, height)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.get(simulated_pages[name].as_uri())
    for picture in drawn(browser, ".traffic svg"):
        assert picture["height"] <= height
        assert picture["x"] + picture["width"] <= width
        assert picture["break-inside"] == "avoid"


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty entrants, so that not even the rows of one query fit a page."""
    everyone = [
        WIM.model_copy(
            update={"label": f"spark/wim/n={n}", "baseline": "spark/wim/n=1" if n > 1 else None}
        )
        for n in range(1, 31)
    ]
    path = tmp_path_factory.mktemp("report") / "long.html"
    recorded = results(lines(everyone, 6), header(*everyone))
    path.write_text(render(recorded, "html"), encoding="utf-8")
    return path


@pytest.mark.parametrize("across", [False, True])
def test_no_chart_is_cut_in_print(browser: webdriver.Chrome, long_page: Path, across: bool) -> None:
    """On Letter, the shorter of the usual papers, with Chromium's margins."""
    short, long = 816 - 77, 1056 - 77
    width, height = (long, short) if across else (short, long)
    resize(browser, width, height)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.get(long_page.as_uri())

    charts = drawn(browser, ".chart svg")
    rows = drawn(browser, ".chart svg [data-query]")
    assert charts
    for number, chart in enumerate(charts):
        assert chart["height"] <= height
        assert chart["x"] + chart["width"] <= width
        assert chart["break-inside"] == "avoid"
        bottom = chart["y"] + chart["height"]
        own = [row["y"] + row["height"] for row in rows if row["svg"] == number]
        assert own and max(own) <= bottom
    for kind, columns in ((".times", 2), (".speedups", 4)):  # queries, the mean and the pass
        found = [(row["query"], row["label"]) for row in drawn(browser, f"{kind} [data-query]")]
        compared = 30 if kind == ".times" else 29
        assert len(set(found)) == len(found) == columns * compared
