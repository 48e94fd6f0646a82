"""Suites: data sets, queries and their answers; found by name through `atoll.suites.registry`."""
