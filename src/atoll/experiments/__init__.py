"""The figures and tables of five papers as experiments: files, what this machine can, verdicts."""
