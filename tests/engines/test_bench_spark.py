"""The bench with real Spark: a block, in the middle of which an executor dies.

Without a JDK 17 all of it is skipped, with the reason.
"""

from __future__ import annotations

import os
import signal

import pytest

from atoll.bench.job import NAME
from atoll.bench.results import Results, read_results
from atoll.bench.runner import Tick
from atoll.engines import registry
from atoll.engines.sql.client import SocketClient
from atoll.errors import EngineFailed
from atoll.host.local import LocalHost
from atoll.inspect.processes import descendants, process_table
from atoll.schema.deployment import Role
from atoll.schema.results import (
    BlockFailed,
    DeploymentUp,
    PassDone,
    QueryTime,
    QueryWork,
    VerifyResult,
)
from atoll.supervise import records
from tests.parts.bench_jobs import run, small_job
from tests.parts.deployment import until

pytestmark = pytest.mark.installed


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """One block of WIM and WIC; an executor of the latter is killed as its measured pass begins."""
    try:
        registry.get("spark").locate(LocalHost())
    except EngineFailed as fault:
        pytest.skip(str(fault))

    def kill(tick: Tick) -> None:
        if (tick.label, tick.doing) == ("spark/wic", "measuring"):
            os.kill(an_executor(), signal.SIGKILL)
            # Else the other one may have answered before anybody knows.
            until(is_lost, lambda: "its loss is not noticed")

    path = tmp_path_factory.mktemp("bench") / "r.jsonl"
    run(small_job("spark", "6"), path, kill)
    return read_results(path)


def test_both_policies_come_up_in_their_places_and_answer_rightly(results: Results) -> None:
    both = ["spark/wim", "spark/wic"]
    assert [line.label for line in results.lines if isinstance(line, DeploymentUp)] == both
    looks = [line for line in results.lines if isinstance(line, VerifyResult)]
    assert [look.label for look in looks] == both
    assert [(look.drifted, look.detail) for look in looks] == [(0, ""), (0, "")]
    assert min(look.threads for look in looks) > 0
    warm = [line for line in results.lines if isinstance(line, QueryTime)][:: len(both)]
    assert [(line.label, line.phase, line.answer) for line in warm] == [
        (label, "warm-up", "ok") for label in both
    ]
    assert records.names() == []


def test_a_lost_executor_fails_its_block_only_though_spark_would_go_on(results: Results) -> None:
    """The worker starts another one, and the query is answered: that is no measurement."""
    assert [line.label for line in results.lines if isinstance(line, PassDone)] == ["spark/wim"]
    failed = [line for line in results.lines if isinstance(line, BlockFailed)]
    assert [line.label for line in failed] == ["spark/wic"]
    assert "executors were lost" in failed[0].error
    assert "exited with code 137 (killed" in failed[0].error, "why, in Spark's words and ours"
    assert results.end is not None and results.end.status == "complete"


def test_what_the_whole_pass_took_is_recorded(results: Results) -> None:
    counted = [line for line in results.lines if isinstance(line, QueryWork)]
    assert [(line.label, line.query) for line in counted] == [("spark/wim", "q6")]
    assert counted[0].work.tasks and counted[0].work.run_s


def is_lost() -> bool:
    record = records.read(NAME)
    assert record is not None
    client = SocketClient(record.endpoints[0], timeout_s=60)
    try:
        client.execute("select 1", timeout_s=120)
    except EngineFailed as fault:
        return "executors were lost" in str(fault)
    finally:
        client.close()
    return False


def an_executor() -> int:
    record = records.read(NAME)
    assert record is not None
    worker = next(one.id for one in record.processes if one.spec.role is Role.WORKER)
    assert worker is not None
    executor, *_ = descendants(process_table(LocalHost()), worker.pid)
    return executor.pid
