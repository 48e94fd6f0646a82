"""The engine `postgresql`."""
