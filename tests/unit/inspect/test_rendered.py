"""Which processes belong to a rendered deployment, on a made-up /proc."""

from __future__ import annotations

import pytest

from atoll.errors import EngineFailed
from atoll.inspect.rendered import verify_rendered
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import Plan
from atoll.schema.rendered import Rendered
from tests.parts.faults import fails
from tests.parts.proc import Proc, stat
from tests.parts.toy import toy_plan

MARK = "pg:/srv/pg"
RENDERED = Rendered(
    name="pg",
    mark=MARK,
    processes=tuple(
        ProcessSpec(
            name=f"worker-{slot}", role=Role.WORKER, slot=slot, argv=("x",), env={}, stage=0
        )
        for slot in (0, 1)
    ),
)


def plan() -> Plan:
    """Slots with the CPUs that the processes of `Proc` have."""
    made = toy_plan(2)
    slots = tuple(slot.model_copy(update={"cpus": (0, 1, 2, 3)}) for slot in made.slots)
    return made.model_copy(update={"slots": slots})


def world(parents: dict[int, int], environments: dict[int, str]) -> Proc:
    host = Proc()
    host.add(1, comm="systemd")
    host.files["/proc/1/stat"] = stat(1, 0, comm="systemd")
    for pid, parent in parents.items():
        host.add(pid)
        host.files[f"/proc/{pid}/stat"] = stat(pid, parent, comm="server")
        host.files[f"/proc/{pid}/environ"] = environments.get(pid, "")
    return host


def marks(name: str, mark: str = MARK) -> str:
    return f"A=1\0ATOLL_DEPLOYMENT={mark}\0ATOLL_PROCESS={name}\0"


def test_children_count_also_without_marks_and_others_do_not() -> None:
    host = world(
        {10: 1, 11: 10, 12: 11, 20: 1, 30: 1, 31: 1},
        {
            10: marks("worker-0"),
            12: marks("worker-0"),
            20: marks("worker-1"),
            30: marks("worker-0", "pg:/srv/other"),  # of another folder
            31: marks("somebody"),  # of no planned process
        },
    )
    found = verify_rendered(host, RENDERED, plan())
    assert [(one.pid, one.process) for one in found.processes] == [
        (10, "worker-0"),
        (11, "worker-0"),
        (12, "worker-0"),
        (20, "worker-1"),
    ]
    assert (found.deployment, found.missing) == ("pg", ())


def test_a_process_that_does_not_run_is_missing() -> None:
    found = verify_rendered(world({10: 1}, {10: marks("worker-1")}), RENDERED, plan())
    (missing,) = found.missing
    assert (missing.code, missing.process, missing.pid) == ("process-missing", "worker-0", 0)
    assert found.drifted == 1


@pytest.mark.parametrize("user", [0, 1000])
def test_nothing_that_runs_is_a_fault(user: int) -> None:
    host = world({}, {})
    host.user_id = lambda: user  # type: ignore[method-assign]  # as the one who asks
    with fails(EngineFailed, name="pg"):
        verify_rendered(host, RENDERED, plan())
