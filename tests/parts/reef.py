"""An engine of another package with every fact declared. Its servers fail at once."""

from __future__ import annotations

import os
from collections.abc import Sequence

from reef_facts import FACTS  # type: ignore[import-not-found]  # from docs/adding-an-engine.md

from atoll.engines.api import Client, Column, Installation, Layout, QueryResult, Table
from atoll.host.api import Host
from atoll.schema.deployment import ProcessSpec, Role
from atoll.schema.plan import EngineTraits, Plan

SERVER = """
touch "$REEF_LOCK"
printf %s "$REEF_LOCK" > lock-file
echo 'error: the coral is bleached'
echo 'reef: could not start'
exit 3
"""


class ReefClient:
    def execute(self, sql: str, *, timeout_s: float) -> QueryResult:
        return QueryResult((Column("n", "bigint"),), [(1,)], 0.001)

    def instances(self, *, timeout_s: float) -> int:
        return 1

    def close(self) -> None:
        pass


class ReefEngine:
    facts = FACTS
    traits = EngineTraits(
        name="reef",
        distributed=False,
        parallel_query=True,
        has_coordinator=False,
        jvm=False,
        heap_ratio=0.5,
        ratio_source="a test",
        min_heap_bytes=1 << 20,
        coordinator_bytes=0,
        overhead_bytes=0,
    )

    def locate(self, host: Host) -> Installation:
        return Installation("1", "/usr/lib/reef")

    def ports(self, plan: Plan) -> int:
        return 0

    def layout(
        self,
        plan: Plan,
        installation: Installation,
        *,
        run_dir: str,
        ports: Sequence[int],
        scratch_dir: str | None = None,
    ) -> Layout:
        sockets = tuple(f"{run_dir}/{slot.index}.sock" for slot in plan.slots)
        return Layout(
            processes=tuple(
                ProcessSpec(
                    name=f"server-{slot.index}",
                    role=Role.WORKER,
                    slot=slot.index,
                    argv=("/bin/sh", "-c", SERVER),
                    env={"REEF_LOCK": os.environ.get("REEF_LOCK", "")},
                    stage=0,
                    cwd=f"data-{slot.index}",
                    ready_socket=socket,
                )
                for slot, socket in zip(plan.slots, sockets, strict=True)
            ),
            endpoints=sockets,
        )

    def connect(self, endpoints: Sequence[str], *, timeout_s: float) -> list[Client]:
        return [ReefClient() for _ in endpoints]

    def attach(self, table: Table) -> list[str]:
        return []

    def reach(self, url: str, *, timeout_s: float) -> Client:
        return ReefClient()
