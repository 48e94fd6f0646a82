"""What a live process really does: its descendants, its threads, their masks. Reads only."""
