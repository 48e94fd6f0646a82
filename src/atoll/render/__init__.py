"""A plan as files that start an engine without Atoll: its own configuration, scripts, units."""
