"""Transactional workloads: commits a second on few chiplets and on many, and what must hold."""
