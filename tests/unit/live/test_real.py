"""The watcher beside a real deployment of the toy engine."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from atoll.live.watcher import Watcher
from atoll.schema.deployment import State
from atoll.schema.live import DeploymentView
from atoll.supervise import records
from atoll.supervise.stop import down
from tests.parts.deployment import HOST, PATIENCE_S, owner
from tests.parts.toy import THREADS


def test_it_sees_a_moved_thread_a_dead_supervisor_and_the_end() -> None:
    watcher = Watcher(HOST)

    def until(found: Callable[[list[DeploymentView]], bool]) -> DeploymentView | None:
        """Look until it is so; the deployment then, if it is there."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            views = [one for one in watcher.look().deployments if one.name == "live-real"]
            if found(views):
                return views[0] if views else None
            assert time.monotonic() < deadline, views
            time.sleep(watcher.pause_s)

    with owner("live-real") as held:
        held.until_says("ready")
        one = until(lambda views: any(len(view.slots) == 3 for view in views))
        assert one is not None and one.state is State.READY and not one.drift_by_code
        workers = [slot for slot in one.slots if slot.slot is not None]
        assert [slot.slot for slot in workers] == [0, 1]
        assert all(slot.threads >= THREADS and slot.memory_age_s == 0 for slot in workers)
        assert all(slot.bytes_by_node and slot.local_share is not None for slot in workers)

        record = held.record()
        worker = next(each for each in record.processes if each.spec.slot == 0)
        assert worker.id is not None and record.supervisor is not None
        mask = os.sched_getaffinity(worker.id.pid)
        others = os.sched_getaffinity(0) - mask
        if others:  # a machine with one CPU has no other place
            os.sched_setaffinity(worker.id.pid, others)
            one = until(lambda views: bool(views[0].drift_by_code))
            assert one is not None and one.slots[1].outside == 1
            os.sched_setaffinity(worker.id.pid, mask)
            until(lambda views: not views[0].drift_by_code)

        os.kill(record.supervisor.pid, signal.SIGKILL)
        until(lambda views: not views or views[0].state in (State.FAILED, State.STOPPING))
        if "live-real" in records.names():
            down("live-real", HOST)
        assert until(lambda views: not views) is None
