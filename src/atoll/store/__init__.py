"""Atoll's folders and files: XDG folders, atomic writes, locks, folders made once, checksums."""
