"""Statistics for benchmarks: paired intervals over blocks, outliers, geometric means. Pure."""
