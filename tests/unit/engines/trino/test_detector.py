"""A worker is in to stay once the coordinator's failure detector trusts it."""

from __future__ import annotations

from typing import Any

import pytest

from atoll.engines.trino.client import TrinoClient, parse_url
from atoll.engines.trino.detector import SETTLES_S
from tests.parts.trino_coordinator import coordinator, page

A, B = ({"uri": f"http://127.0.0.1:{port}/v1/status", "age": "1s"} for port in (81, 82))
LISTED = page(
    columns=[{"name": "http_uri", "type": "varchar"}],
    data=[["http://127.0.0.1:81"], ["http://127.0.0.1:82"]],
)


@pytest.mark.parametrize(
    ("known", "failed", "settles_s"),
    [
        ([A, B], [], 0.0),
        ([A, B], [B], SETTLES_S),  # it was met a moment ago
        ([A], [], SETTLES_S),  # the list of nodes has met one that the detector has not
        ([], [], SETTLES_S),
        ((404, b"no such page"), (404, b"no such page"), 0.0),  # later versions have none
        ([A, B], (500, b"[]"), SETTLES_S),
        ([A, B], b"no JSON", SETTLES_S),
        ([A, B], [{"url": 1}], SETTLES_S),
        ([A, B], {"error": 1}, SETTLES_S),
        ([A, B], [None], SETTLES_S),
        ([{"uri": 81}], [], SETTLES_S),
    ],
)
def test_a_count_lasts_where_the_detector_trusts_all(
    known: Any, failed: Any, settles_s: float
) -> None:
    with coordinator(known, failed, LISTED) as server:
        client = TrinoClient(parse_url(server.url), own=True)
        assert (client.instances(timeout_s=30), client.settles_s) == (2, settles_s)
        assert [command for command, _ in server.asked] == ["GET", "GET", "POST"]
        users = {headers["X-Trino-User"] for _, headers in server.asked}
        assert users == {parse_url(server.url).user}


def test_who_is_not_shown_the_detector_waits() -> None:
    with coordinator((403, b"Management only resource"), LISTED) as server:
        client = TrinoClient(parse_url(server.url), own=True)
        assert (client.instances(timeout_s=30), client.settles_s) == (2, SETTLES_S)
        assert [command for command, _ in server.asked] == ["GET", "POST"]


def test_a_cluster_that_runs_already_is_counted_alone() -> None:
    with coordinator(LISTED) as server:
        client = TrinoClient(parse_url(server.url))
        assert (client.instances(timeout_s=30), client.settles_s) == (2, 0.0)


def test_a_detector_that_says_nothing_does_not_hold_up_the_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("atoll.engines.trino.client._DETECTOR_LIMIT_S", 0.05)
    with coordinator(LISTED) as server:
        server.silent = ("GET",)
        client = TrinoClient(parse_url(server.url), own=True)
        assert (client.instances(timeout_s=30), client.settles_s) == (2, SETTLES_S)
