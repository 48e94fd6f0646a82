"""The figures and tables of two papers as experiments: files, what this machine can, verdicts."""
