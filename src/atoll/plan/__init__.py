"""The planner: turns a machine and an engine's traits into worker slots. Pure; no I/O.

`make_plan` is the entry point, `make_comparable_plans` the one for benchmarks. With
`atoll.plan.chiplets` the user specifies chiplets that the system hides.
"""

from atoll.plan.identity import machine_id
from atoll.plan.planner import comparable, make_comparable_plans, make_plan

__all__ = ["comparable", "machine_id", "make_comparable_plans", "make_plan"]
