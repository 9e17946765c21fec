"""Which kernel serves a problem on a machine, and why: the model, what timings taught it, the choice."""
