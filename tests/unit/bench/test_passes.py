"""What of a query's time is measured, and what closes a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from atoll.bench.passes import Clock, run_pass
from atoll.bench.runner import Bench
from atoll.engines.api import QueryResult
from atoll.schema.base import Record
from atoll.schema.results import ClusterLook, Entrant, PassDone, ProcessSeen
from tests.parts.bench import IDLE, WIM, FakeClient, FakeServer, FakeWork, header, no_need
from tests.parts.fake_host import FakeHost


def test_the_clock_stops_when_the_rows_are_held() -> None:
    """Where the engine's client is a call in another process, the way here is not the query's."""

    class Hosted(FakeClient):
        def ask(self, sql: str, *, timeout_s: float) -> Callable[[], QueryResult]:
            result = self.execute(sql, timeout_s=timeout_s)

            def fetch() -> QueryResult:
                self.host.sleep(5)
                return result

            return fetch

    host = FakeHost(IDLE)
    ran = run_pass(
        [Hosted(host, 2.0)], [["q1", "q6"]], str, limit_s=60.0, host=host, reconnect=no_need
    )
    assert ran.fault is None
    assert [one.seconds for one in ran.answers] == [2.0, 2.0]
    assert [len(one.result.rows) for one in ran.answers] == [1, 1]
    assert ran.seconds == 4.0


def test_a_pass_takes_as_long_as_a_query_runs() -> None:
    host = FakeHost(IDLE)
    clock = Clock(host)
    with clock.query():
        host.sleep(2)
        with clock.query():
            host.sleep(1)
        host.sleep(4)
    host.sleep(100)
    assert clock.read() == 7.0
    with clock.query():
        host.sleep(2)
        assert clock.read() == 9.0


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
