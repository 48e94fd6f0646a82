"""Suites: data sets, queries and their answers. `atoll.suites.registry` finds one by name."""
