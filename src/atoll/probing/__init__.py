"""Measures this machine: chooses what `atoll-probe` measures, for how long and on which CPUs,
watches for disturbances, and saves the results as a profile."""
