"""What of a query's time is measured, and what closes a pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from atoll.bench.passes import covered_s, run_pass
from atoll.bench.runner import Bench
from atoll.engines.api import QueryResult
from atoll.errors import EngineFailed
from atoll.schema.base import Record
from atoll.schema.results import ClusterLook, Entrant, PassDone, ProcessSeen
from tests.parts.bench import IDLE, WIM, FakeClient, FakeServer, FakeWork, header, no_need
from tests.parts.fake_host import FakeHost


def test_the_clock_is_where_the_engines_client_is() -> None:
    """Where that is a call in another process, the way there and back is not the query's."""

    class Hosted(FakeClient):
        def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
            self.host.sleep(3)
            began_s = self.host.monotonic()
            result = super().execute(sql, timeout_s=timeout_s)
            self.host.sleep(5)
            return replace(result, began_s=began_s, engine_seconds=self.seconds)

    host = FakeHost(IDLE)
    ran = run_pass(
        [Hosted(host, 2.0)], [["q1", "q6"]], str, limit_s=60.0, host=host, reconnect=no_need
    )
    assert ran.fault is None
    assert [one.seconds for one in ran.answers] == [2.0, 2.0]
    assert ran.seconds == 4.0


def test_a_query_that_fails_is_part_of_a_pass() -> None:
    def trouble(sql: str) -> None:
        if sql == "q1":
            host.sleep(7)
            raise EngineFailed("no such table")

    host = FakeHost(IDLE)
    ran = run_pass(
        [FakeClient(host, 2.0, trouble)],
        [["q1", "q6"]],
        str,
        limit_s=60.0,
        host=host,
        reconnect=lambda stream: FakeClient(host, 2.0, trouble),
    )
    assert ([one.query for one in ran.unanswered], ran.seconds) == (["q1"], 9.0)


def test_a_pass_takes_as_long_as_a_query_runs() -> None:
    assert covered_s([]) == 0
    assert covered_s([(0, 7), (2, 3), (107, 109)]) == 9
    assert covered_s([(2, 5), (0, 3), (5, 6)]) == 6


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9))))
def test_seconds_of_a_pass_by_counting_them(starts: list[tuple[int, int]]) -> None:
    spans = [(start, start + length) for start, length in starts]
    assert covered_s(spans) == len({second for span in spans for second in range(*span)})


def test_a_pass_is_done_when_its_cluster_was_looked_at() -> None:
    """Else a look that fails would leave a block both done and failed."""

    class Seen(FakeServer):
        def look(self, *, deep: bool) -> tuple[tuple[ProcessSeen, ...], str]:
            return (), "elsewhere"

    host = FakeHost(IDLE)

    @contextmanager
    def deploy(entrant: Entrant) -> Iterator[FakeServer]:
        yield Seen([FakeClient(host)])

    found: list[Record] = []
    bench = Bench(header(WIM, blocks_asked=1), host, deploy, FakeWork(), found.append, print)
    bench.run()
    kinds = [type(one) for one in found]
    assert kinds.count(ClusterLook) == 2
    assert kinds[-3:-1] == [ClusterLook, PassDone]
