"""All file formats of Atoll. Imports no other room and does no I/O; generates the JSON Schemas."""
