"""Greenplum, for which Atoll only writes files."""
