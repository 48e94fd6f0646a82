"""Presto, the papers' own engine, through a real deployment: all answers, placement, faults.

Where it is not installed all of it is skipped, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atoll.engines import registry
from atoll.errors import EngineFailed
from atoll.supervise.launch import Running
from tests.engines.answers import TPCH
from tests.engines.trino_parts import (
    is_on_loopback_only,
    said_of_a_killed_worker,
    secrets_told,
    up,
    wrong_answers,
)

pytestmark = pytest.mark.long

LONG = "select count(*) from tpch.sf1000.lineitem a cross join tpch.sf1000.lineitem b"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with up("presto", "wic", workers=2) as running:
        yield running


def test_all_answers(running: Running) -> None:
    assert wrong_answers(running.clients[0], "presto", TPCH.query_names) == {}


def test_every_thread_and_page_is_where_the_plan_has_it(running: Running) -> None:
    assert running.verify().drift == []


def test_a_query_that_takes_too_long_is_cancelled(running: Running) -> None:
    (client,) = registry.get("presto").connect(running.deployment.endpoints, timeout_s=60)
    with pytest.raises(EngineFailed, match="cancelled"):
        client.execute(LONG, timeout_s=2)
    states = running.clients[0].execute(
        "select state from system.runtime.queries where query like '%cross join%' "
        "and query not like '%state%'",
        timeout_s=60,
    )
    assert states.rows == [("FAILED",)]


def test_it_listens_on_loopback_only_and_tells_no_secret(running: Running) -> None:
    assert is_on_loopback_only(running)
    assert secrets_told(running) == []


def test_a_killed_worker_fails_the_deployment(running: Running) -> None:
    """The last test of this deployment."""
    assert "worker-1 died (killed by SIGKILL)" in said_of_a_killed_worker(running, LONG)


def test_answers_under_another_policy() -> None:
    with up("presto", "win", workers=1) as running:
        assert wrong_answers(running.clients[0], "presto", ("q1", "q6", "q18")) == {}
        assert running.verify().drift == []
