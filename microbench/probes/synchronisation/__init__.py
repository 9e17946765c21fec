"""How warps of one SM wait for one another: what a hand-over costs alone."""
