"""Query engines: one small module each, found by name through `atoll.engines.registry`."""
