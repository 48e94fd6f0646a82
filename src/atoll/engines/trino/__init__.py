"""The engines `trino` and `presto`."""
