"""The engine `duckdb`: one process per instance, DuckDB inside it."""
