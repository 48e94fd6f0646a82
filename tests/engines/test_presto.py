"""Presto, the papers' own engine, in a real deployment: all answers, profiles, placement, faults.

Where it is not installed all of it is skipped, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from atoll.engines.api import CountingClient, ProfilingClient
from atoll.schema.plan import Policy
from atoll.suites.tpch_schema import SCHEMAS
from atoll.supervise.launch import Running
from tests.parts.answers import QUERY_LIMIT_S, TPCH
from tests.parts.trino_servers import (
    listening_elsewhere,
    one_past_its_limit_fails,
    said_of_a_killed_worker,
    secrets_told,
    up,
    wrong_answers,
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with up("presto", Policy.WIC, workers=2) as running:
        yield running


def test_all_answers(running: Running) -> None:
    assert wrong_answers(running.clients[0], "presto", TPCH.query_names) == {}


def test_it_tells_how_it_ran_each_query(running: Running) -> None:
    (client,) = running.clients
    assert isinstance(client, ProfilingClient) and isinstance(client, CountingClient)
    for query, sql in TPCH.queries("presto").items():
        profile = client.profile(sql, timeout_s=QUERY_LIMIT_S)
        assert profile is not None and profile.operators, query
        read = {name for one in profile.operators for name in one.tables}
        assert read == {name for name in SCHEMAS if re.search(rf"\b{name}\b", sql)}, query
        assert sum(one.own_s or 0 for one in profile.operators) > 0, query
    peaks = [work.peak_bytes for work in client.work(timeout_s=30).values()]
    assert len(peaks) >= len(TPCH.query_names) and max(filter(None, peaks)) > 0


def test_every_thread_and_page_is_where_the_plan_has_it(running: Running) -> None:
    assert running.verify().drift == []


def test_a_query_that_takes_too_long_is_cancelled(running: Running) -> None:
    one_past_its_limit_fails(running, "presto")


def test_it_listens_elsewhere_on_two_ports_each_and_tells_no_secret(running: Running) -> None:
    """Those of Thrift and of the JDK's JMX for this machine, for whose addresses nothing is set."""
    assert len(listening_elsewhere(running)) <= 2 * len(running.deployment.processes)
    assert secrets_told(running) == []


def test_a_killed_worker_fails_the_deployment(running: Running) -> None:
    """The last test of this deployment."""
    assert "worker-1 died (killed by SIGKILL)" in said_of_a_killed_worker(running)


def test_answers_under_another_policy() -> None:
    with up("presto", Policy.WIN, workers=1) as running:
        assert wrong_answers(running.clients[0], "presto", ("q1", "q6", "q18")) == {}
        assert running.verify().drift == []
