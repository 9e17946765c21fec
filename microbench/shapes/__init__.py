"""The shapes that probes share: a probe is its instruction, and a call of one of these."""
