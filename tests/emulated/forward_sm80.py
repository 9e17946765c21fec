"""The sm80 forward kernel on the emulator: one block for each tile of rows, of one ForwardCase."""

from functools import partial

from attention.kernels.sm80.forward.software_pipelined.arguments import shape_of
from attention.variant import Config
from tests.emulated.forward_launch import run_strided

PATH = "sm80/forward/software_pipelined"


def config_of(tile_keys: int, slice_keys: int, *, warps: int = 4, warp_rows: int = 32, **others: int) -> Config:
    """A point of the variant's space."""
    axes = {"warps": warps, "warp_rows": warp_rows, "tile_keys": tile_keys, "slice_keys": slice_keys}
    defaults = {"blocks": 1, "q_in_registers": 1, "ahead": 1, "fence": 0}
    return Config(tuple((axes | defaults | others).items()))


run = partial(run_strided, shape_of)
