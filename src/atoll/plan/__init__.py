"""The planner: turns a machine and an engine's traits into worker slots. Pure; no I/O.

`make_plan` is the entry point; benchmarks make `comparable` plans. With
`atoll.plan.chiplets` the user specifies chiplets that the system hides.
"""

from atoll.plan.identity import machine_id
from atoll.plan.planner import comparable, make_plan

__all__ = ["comparable", "machine_id", "make_plan"]
