"""Statistics of a bench: paired intervals over blocks, outliers, geometric means. Pure."""
