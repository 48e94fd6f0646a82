"""A plan's malloc and huge pages in a running deployment: enacted, and verified from outside."""

from __future__ import annotations

from atoll.inspect.verify import verify
from atoll.schema.plan import HugePages, Malloc
from atoll.supervise.launch import launch
from tests.parts.deployment import HOST, start
from tests.parts.toy import ToyEngine, this_machine, toy_plan


def test_no_process_has_huge_pages_if_the_plan_says_so() -> None:
    plan = toy_plan(1).model_copy(update={"thp": HugePages.NEVER})
    with launch(plan, ToyEngine(), machine=this_machine(), host=HOST, name="small") as running:
        found = running.verify(deep=False)
        assert found.drifted == 0
        assert {process.thp for process in found.processes} == {False}


def test_processes_that_differ_from_the_plan_are_drift() -> None:
    with start("other") as running:
        deployment = running.deployment
        asked = {"thp": HugePages.NEVER, "malloc": Malloc.JEMALLOC}
        plan = deployment.plan.model_copy(update=asked)
        found = verify(HOST, deployment.model_copy(update={"plan": plan}), deep=True)
        codes = sorted((finding.process, finding.code) for finding in found.drift)
        assert codes == sorted(
            (process.process, code)
            for process in found.processes
            for code in ("malloc-unplanned", "thp-on")
        )
