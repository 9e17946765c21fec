"""Attention and its gradients composed of torch's operations: every feature on every device."""
