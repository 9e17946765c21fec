"""What the notebooks draw and derive, those of the two kernels most of all; nothing else needs it."""
