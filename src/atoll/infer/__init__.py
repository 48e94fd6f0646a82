"""What measured figures say of a machine: chiplets and levels out of matrices, cache capacities
out of curves, the size at which one spread of threads overtakes another. Pure."""
