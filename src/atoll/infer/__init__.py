"""Infers a machine's structure from measured figures: chiplets and levels from matrices, cache
capacities from curves, the size from which one thread placement overtakes another. Pure."""
