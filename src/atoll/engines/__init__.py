"""Query engines: one package each, found by name through `atoll.engines.registry`."""
