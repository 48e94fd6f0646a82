"""The figures and tables of four papers as experiments: files, what this machine can, verdicts."""
