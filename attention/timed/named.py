"""A configuration as a file names it: by the axes that its kernel had then."""

from collections.abc import Mapping

from attention.problem import AttentionProblem
from attention.variant import Config, Variant, settle


def config_of(variant: Variant, problem: AttentionProblem, named: Mapping[str, int]) -> Config:
    """Today's configuration: an axis that the file does not name has the value of its old rule. Raises KeyError."""
    if any(axis not in named for axis, _ in variant.space):
        named = dict(settle(variant.settled, problem, Config(tuple(named.items()))).values)
    return Config(tuple((axis, named[axis]) for axis, _ in variant.space))
