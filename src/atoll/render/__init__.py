"""A plan as files that start an engine without Atoll: configuration, scripts, systemd units."""
