"""Comparisons of Atoll's own code with its peers: `make perf`, `python -m perf [NAME...]`."""
