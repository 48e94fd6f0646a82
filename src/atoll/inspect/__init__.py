"""Inspects live processes: descendants, threads, CPU masks, memory, allocator. Read-only."""
