"""A user's own configuration: read, merged with what placement needs, compared."""
