"""The live view in headless Chromium: its stream shows, hostile names are text, nothing foreign.

Screenshots go to $ATOLL_SCREENSHOTS, or else to the test's folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from atoll.plan import make_plan
from atoll.report.live_page import live_pictures
from atoll.schema.live import LiveView
from tests.browser.pages import NARROW, WIDE, get_log, requests, resize, set_scheme
from tests.parts.live import live_view
from tests.parts.live_server import TOKEN, served
from tests.parts.machines import milan
from tests.parts.plan import DISTRIBUTED

HOSTILE = "<img src=x onerror=alert(1)>"
PATIENCE_S = 60


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_live_view(browser: webdriver.Chrome, screenshots: Path, scheme: str, width: int) -> None:
    machine = milan(2, 4, 8)
    plan = make_plan(machine, DISTRIBUTED, "wicp")
    with served(live_pictures(machine, {"sea": plan, HOSTILE: plan})) as server:
        server.publish(live_view(len(plan.slots), drift=2))
        set_scheme(browser, scheme)
        resize(browser, width, 1400)
        for log in ("browser", "performance"):
            get_log(browser, log)
        browser.get(server.url)
        wait = WebDriverWait(browser, PATIENCE_S)
        wait.until(lambda _: len(rows(browser)) == len(plan.slots))
        wait.until(lambda _: browser.find_elements(By.CSS_SELECTOR, ".picture svg .drifting"))
        assert TOKEN not in browser.current_url, "the token stays out of the address bar"
        assert rows(browser)[0].split()[-1] == "2"
        assert "thread-outside: CPUs 9 instead of CPUs 0-7" in page_text(browser)
        target = screenshots / f"live-{scheme}-{width}.png"
        assert browser.save_screenshot(str(target))
        print(f"screenshot: {target}")

        server.publish(with_name(live_view(1), HOSTILE))
        wait.until(lambda _: HOSTILE in page_text(browser))
        assert not browser.find_elements(By.CSS_SELECTOR, "main img")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width

        browser.find_element(By.ID, "pause").click()
        server.publish(live_view(3))
        wait.until(lambda _: "Paused." in browser.find_element(By.ID, "state").text)
        assert HOSTILE in page_text(browser)
    wait.until(lambda _: "trying again" in browser.find_element(By.ID, "state").text)
    messages = [entry["message"] for entry in get_log(browser, "browser")]
    assert not [one for one in messages if "Content Security Policy" in one or "Uncaught" in one]
    assert all(url.startswith("http://127.0.0.1:") for url in requests(browser))


def test_without_its_token_the_page_says_what_to_do(browser: webdriver.Chrome) -> None:
    with served() as server:
        browser.get(f"http://127.0.0.1:{server.port}/")
        WebDriverWait(browser, PATIENCE_S).until(
            lambda _: "open the URL" in browser.find_element(By.ID, "state").text
        )
        browser.get(f"http://127.0.0.1:{server.port}/#token=wrong")
        browser.refresh()
        WebDriverWait(browser, PATIENCE_S).until(
            lambda _: "missing or wrong" in browser.find_element(By.ID, "state").text
        )


def test_it_says_why_it_shows_nothing_and_gives_a_silent_server_up(
    browser: webdriver.Chrome,
) -> None:
    """Its waits are a hundredth as long here."""
    faster = "const wait = setTimeout; window.setTimeout = (done, ms) => wait(done, ms / 100);"
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": faster})
    wait = WebDriverWait(browser, PATIENCE_S)

    def says(words: str) -> None:
        wait.until(lambda _: words in browser.find_element(By.ID, "state").text)

    try:
        with served(streams=0) as server:
            browser.get(server.url)
            says("0 views are open")
        with served() as server:
            browser.get(server.url)
            says("does not answer")
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def rows(browser: webdriver.Chrome) -> list[str]:
    return [one.text for one in browser.find_elements(By.CSS_SELECTOR, "tbody tr")]


def page_text(browser: webdriver.Chrome) -> str:
    return browser.find_element(By.TAG_NAME, "main").text


def with_name(view: LiveView, name: str) -> LiveView:
    (one,) = view.deployments
    changed = one.model_copy(
        update={**dict.fromkeys(("name", "engine", "error"), name), "drift_by_code": {name: 1}}
    )
    return view.model_copy(update={"deployments": (changed,), "notices": (name,)})
