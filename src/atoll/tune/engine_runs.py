"""Runs the queries of a suite on an engine that is started with a setting.

As in `atoll bench`: the data leave the page cache, the engine starts, one pass warms it up, the
next one is measured, and the answers of both are checked.
"""

from __future__ import annotations

from atoll.bench.api import Server
from atoll.bench.axes import chosen
from atoll.bench.idle import wait_until_idle
from atoll.bench.job import Job
from atoll.bench.passes import Pass, run_pass
from atoll.bench.schedule import stream_orders
from atoll.errors import EngineFailed, UsageError
from atoll.host.api import Host
from atoll.plan import make_plan
from atoll.schema.plan import EngineTraits, Plan
from atoll.schema.results import Entrant
from atoll.tune.factors import Recipe
from atoll.tune.metric import Ran
from atoll.tune.runs import Differs, RunFault, start_runner


class EngineRuns:
    """The `atoll.tune.runs.Runs` of an engine, from the last entrant of a job on.

    `knobs_folder`: as of `start_runner`.
    """

    def __init__(
        self, host: Host, job: Job, traits: EngineTraits, *, knobs_folder: str = ""
    ) -> None:
        self._host, self._job, self._traits = host, job, traits
        self._deploy = job.deployer(job.header.machine, host, lambda line: None)
        self._guard = start_runner(host, knobs_folder) if knobs_folder else None

    def run(self, recipe: Recipe, *, limit_s: float) -> Ran:
        try:
            plan = plan_of(recipe, self._job, self._traits)
            entrant = self._job.header.entrants[-1].model_copy(update={"plan": plan})
            self._job.work.drop_from_cache()
            with self._deploy(entrant) as server:
                for _ in range(self._job.header.warmups):
                    self._pass(server, entrant, limit_s)
                idle_share = wait_until_idle(self._host, 0.0)
                done = self._pass(server, entrant, limit_s)
                server.check_alive()
        except (EngineFailed, UsageError) as fault:
            raise RunFault(str(fault)) from None
        return Ran(
            seconds=done.seconds,
            latencies_s=[answer.seconds for answer in done.answers],
            idle_share=idle_share,
        )

    def _pass(self, server: Server, entrant: Entrant, limit_s: float) -> Pass:
        """Raises RunFault if a query fails or has another answer, or EngineFailed."""
        work = self._job.work
        done = run_pass(
            server.streams,
            stream_orders(self._job.header.queries, entrant.streams),
            lambda query: work.sql(entrant.engine, query),
            limit_s=limit_s,
            host=self._host,
            reconnect=server.reconnect,
        )
        for answer in done.answers:
            if differing := work.check(answer.query, answer.result):
                raise Differs(f"the answer to {answer.query} is {work.differing}: {differing}")
        if done.fault is not None:
            raise done.fault
        for one in done.unanswered:
            raise RunFault(f"{one.query} fails: {one.fault}")
        return done

    def end(self) -> None:
        if self._guard is not None:
            self._guard.close()


def plan_of(recipe: Recipe, job: Job, traits: EngineTraits) -> Plan:
    """The plan of the job's last entrant, changed by the recipe. Raises UsageError."""
    base = job.header.entrants[-1].plan
    assert base is not None
    if not recipe.axes:
        return base
    return make_plan(
        job.header.machine,
        traits,
        base.policy.value,
        heap_limit_bytes=base.total_heap_bytes,
        **chosen(recipe.axes),
    )
