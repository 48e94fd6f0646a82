"""Graphs of operators and their placements, as pictures."""
