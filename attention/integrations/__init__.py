"""Where other people's code meets these kernels: torch's own function, and Transformers' attention interface."""
