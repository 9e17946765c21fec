"""What the notebooks of the two kernels draw and derive; nothing else needs it."""
