"""Before a first call: which problems a program poses (record), and their kernels compiled on all cores (prewarm)."""
