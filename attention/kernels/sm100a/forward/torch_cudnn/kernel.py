"""Torch's kernel, called in the form that also returns lse."""

from attention.torch_calls import cudnn as forward

__all__ = ["forward"]
