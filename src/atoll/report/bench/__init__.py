"""Benchmark results: in the terminal, as HTML, Markdown, CSV and charts."""
