"""The figures and tables of three papers as experiments: files, what this machine can, verdicts."""
