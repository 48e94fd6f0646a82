"""A measured profile: in the terminal, as a page and as heat maps."""
