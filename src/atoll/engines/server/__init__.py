"""What engines share whose every instance is a whole server."""
