"""Every file format of Atoll. Knows nobody, does no I/O; JSON Schemas are generated from here."""
