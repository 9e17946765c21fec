"""What kernels have alike: the problems they serve, the strides of results, and device code."""
