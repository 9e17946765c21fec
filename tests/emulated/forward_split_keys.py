"""The sm80 kernel for few rows on the emulator: one block for each part of a tile's keys, of one ForwardCase."""

from functools import partial

from attention.kernels.sm80.forward.split_keys.arguments import shape_of
from attention.variant import Config
from tests.emulated.forward_launch import run_few

PATH = "sm80/forward/split_keys"


def config_of(tile_keys: int, key_splits: int = 2, **others: int) -> Config:
    """A point of the variant's space."""
    axes = {"warps": 4, "tile_keys": tile_keys, "key_splits": key_splits}
    return Config(tuple((axes | others).items()))


run = partial(run_few, shape_of)
