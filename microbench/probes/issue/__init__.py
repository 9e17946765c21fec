"""How instructions leave the scheduler: what the control bits of a cubin promise, and what the hardware needs."""
