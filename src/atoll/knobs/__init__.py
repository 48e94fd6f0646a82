"""System-wide settings: read, recorded in a journal on disk before a change, and undone."""
