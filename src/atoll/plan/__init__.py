"""The planner: from a machine and an engine's traits to worker slots. Pure; no I/O.

`make_plan` is the way in, `make_comparable_plans` the one for a bench; `atoll.plan.chiplets`
lets the user name chiplets that the system hides.
"""

from atoll.plan.identity import machine_id
from atoll.plan.planner import comparable, make_comparable_plans, make_plan

__all__ = ["comparable", "machine_id", "make_comparable_plans", "make_plan"]
