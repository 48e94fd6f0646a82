"""Renderers: the terminal, HTML, Markdown, CSV, SVG. Pure: records in, text out."""
