"""System-wide switches: read, journalled on disk before they are turned, undone."""
