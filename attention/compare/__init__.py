"""Our kernels beside everybody else's: same cells, one process, one timer."""
