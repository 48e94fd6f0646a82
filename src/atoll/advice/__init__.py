"""Advice on memory, threads, allocator and system settings, with evidence for each rule."""
