"""Engines and machines that the planner's tests share."""

from __future__ import annotations

from hypothesis import strategies as st

from atoll.schema.plan import EngineTraits, TaskThreads
from tests.parts.machines import GIB, NodeShape

DISTRIBUTED = EngineTraits(
    name="engine",
    distributed=True,
    parallel_query=True,
    has_coordinator=True,
    jvm=True,
    heap_ratio=0.75,
    ratio_source="the engine's guide",
    min_heap_bytes=GIB // 64,
    coordinator_bytes=GIB,
    overhead_bytes=GIB // 64,
    task_threads=TaskThreads(comm="task"),
)
SINGLE = DISTRIBUTED.model_copy(
    update={"distributed": False, "has_coordinator": False, "coordinator_bytes": 0, "jvm": False}
)
SERIAL = DISTRIBUTED.model_copy(update={"parallel_query": False})

shapes = st.lists(
    st.lists(
        st.builds(
            NodeShape, st.lists(st.integers(2, 9), max_size=5).map(tuple), st.integers(0, 5)
        ).filter(lambda shape: sum(shape.chiplets) + shape.rest > 0),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=2,
)
