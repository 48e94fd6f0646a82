"""Atoll: run query engines at the speed of the hardware they already have.

One flow, one file between any two steps (docs/architecture.md):
topology -> plan -> launch -> verify -> bench -> report.
"""

__version__ = "0.1.0"
