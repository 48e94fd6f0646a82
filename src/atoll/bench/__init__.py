"""The bench: policies measured against each other, block by block; results as they come."""
