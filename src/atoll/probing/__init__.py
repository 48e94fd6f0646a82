"""Measuring this machine: decides what `atoll-probe` measures, for how long and on whose CPUs,
watches who disturbs it, and keeps what came out as a profile."""
