"""Several machines over ssh: each runs the same commands, and their answers are gathered."""
