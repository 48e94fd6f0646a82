"""The planner: from a machine and an engine's traits to worker slots. Pure; no I/O.

`planner.make_plan` is the way in; `chiplets` lets the user name chiplets that the system hides.
"""
