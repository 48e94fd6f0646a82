"""Opens a page and reports what it requested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from selenium import webdriver

WIDE, NARROW = 1100, 420


def show(browser: webdriver.Chrome, page: Path, scheme: str, width: int) -> None:
    """Open the page in a window of that width, as tall as the page."""
    set_scheme(browser, scheme)
    resize(browser, width, 900)
    browser.get("about:blank")  # a live page before this one asks its server no more
    for log in ("browser", "performance"):
        get_log(browser, log)  # drop the entries of earlier pages
    browser.get(page.as_uri())
    resize(browser, width, browser.execute_script("return document.body.scrollHeight"))


def set_scheme(browser: webdriver.Chrome, scheme: str) -> None:
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def get_log(browser: webdriver.Chrome, name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = browser.get_log(name)  # type: ignore[no-untyped-call]  # selenium
    return entries


def resize(browser: webdriver.Chrome, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def requests(browser: webdriver.Chrome) -> list[str]:
    """Every address that the page requested since `show`."""
    events: list[dict[str, Any]] = [
        json.loads(entry["message"])["message"] for entry in get_log(browser, "performance")
    ]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
