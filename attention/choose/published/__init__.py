"""Kernels that others published, by our model: each one's own tile, and by how much a prediction misses."""
