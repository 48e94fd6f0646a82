"""SingleStore, for which Atoll only writes files."""
