"""Presto, the papers' own engine, through a real deployment: all answers, placement, faults.

Where it is not installed all of it is skipped, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atoll.schema.plan import Policy
from atoll.supervise.launch import Running
from tests.parts.answers import TPCH
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
