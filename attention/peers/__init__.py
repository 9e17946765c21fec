"""Our GPU kernels beside everybody else's: same cells, one process, one timer. `python -m attention bench --peers`."""
