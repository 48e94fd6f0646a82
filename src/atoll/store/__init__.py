"""Where Atoll keeps things, and how it writes them: XDG folders, atomic writes, checksums."""
