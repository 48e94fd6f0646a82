"""`atoll tune`: finds the settings that make a command better, by running it."""
