"""The sm70 forward kernel on the emulator: one block for each tile of rows, of one ForwardCase."""

from functools import partial

from attention.kernels.sm70.forward.quad_pair.arguments import shape_of
from attention.variant import Config
from tests.emulated.forward_launch import run_split

PATH = "sm70/forward/quad_pair"


def config_of(
    tile_keys: int = 64, *, warps: int = 4, warp_rows: int = 16, p_in_registers: int = 1, **others: int
) -> Config:
    """A point of the variant's space."""
    axes = {"warps": warps, "warp_rows": warp_rows, "tile_keys": tile_keys, "p_in_registers": p_in_registers}
    axes["key_splits"] = 1
    return Config(tuple((axes | others).items()))


run = partial(run_split, shape_of)
