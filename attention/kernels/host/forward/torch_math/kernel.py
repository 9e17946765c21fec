"""The slow path, which serves everything."""

from attention.slow import forward

__all__ = ["forward"]
