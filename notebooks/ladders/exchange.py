"""Where scores of the Volta kernel lie, and where p V wants them: its own code, executed on the emulator.

A warp has 16 rows and `keys` keys of a tile. Layouts of m8n8k4 are those that microbench.layouts finds; which rows and
keys stand behind a product's eight, and how p travels, the kernel's headers say (sm70/forward/quad_pair).
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from attention.kernels.launch.source import source_of
from attention.kernels.sm70.forward.quad_pair.arguments import shape_of
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from attention.verify.emulated import headers_of
from microbench import layouts
from microbench.emulator import EmulatedDevice
from microbench.errors import DataError
from microbench.layouts import WARP
from microbench.layouts.derive import Numbers
from microbench.machine.arch import by_name

VOLTA = "sm70/forward/quad_pair"
SOURCE = Path(__file__).with_suffix(".cu")
ROWS, BLOCK = 16, 16  # rows of a warp, keys of the four products that are made at once


@dataclass(frozen=True, eq=False)
class Exchange:
    """One warp's p by one route.

    lane, element  (rows, keys): the lane that makes a score, and its place among that lane's accumulators
    row_of         (lanes,): the row that a lane has of an operand
    row, key       (lanes, halves, fours, 4): the score that each 16-bit number of an operand is; a half is 8 keys
    """

    lane: Numbers
    element: Numbers
    row_of: Numbers
    row: Numbers
    key: Numbers

    @property
    def source(self) -> Numbers:
        """The lane that made each number of an operand, in the shape of `key`."""
        return self.lane[self.row, self.key]

    @property
    def words_received(self) -> int:
        """32-bit words of an operand that a lane did not make itself, of `words`; the same for every lane."""
        foreign = (self.source != np.arange(WARP)[:, None, None, None]).reshape(WARP, -1, 2)
        (count,) = np.unique(foreign.any(axis=2).sum(axis=1))
        return int(count)

    @property
    def words(self) -> int:
        """32-bit words of an operand that a lane needs for a tile."""
        return int(self.key[0].size // 2)


@cache
def exchange(in_registers: bool, keys: int = 32) -> Exchange:
    """Execute the kernel's exchange of 16 rows by `keys` keys, 32 or 64.

    Raises EnvironmentLacks without a C++ compiler, DeviceError for a race, DataError where a lane does not end with
    every key of its row, or a register has its halves from two lanes.
    """
    problem = AttentionProblem.parse_shape("1,1,1,1024,1024,128", dtype="float16", device="cuda", causal=False)
    tile = (
        ("warps", 4),
        ("warp_rows", ROWS),
        ("tile_keys", keys),
        ("p_in_registers", int(in_registers)),
        ("key_splits", 1),
    )
    variant, config = by_path(VOLTA), Config(tile)
    (build,) = variant.steps(problem, config)
    defines = source_of(variant.folder, build, by_name("sm70")).defines
    kernel = EmulatedDevice().load(
        SOURCE.read_text(), SOURCE.name, kernel="exchange", defines=defines, include=headers_of(variant.folder)
    )
    row_of, key_of = np.empty(WARP, np.int64), np.empty(WARP, np.int64)
    words = np.empty((WARP, keys // 8, 2, 2), np.uint32)
    kernel((1,), (WARP,), (row_of, key_of, words), shared_mem=shape_of(problem, config).smem_bytes)
    lane, element = accumulators(row_of, key_of, keys)
    held = keys // 2
    places = np.argsort((lane * held + element).ravel())  # of each number, its row and key
    row, key = np.divmod(places[words.view(np.float16).astype(np.int64)], keys)
    found = Exchange(lane, element, row_of, row, key)
    if (row != row_of[:, None, None, None]).any() or (np.sort(key.reshape(WARP, -1)) != np.arange(keys)).any():
        raise DataError("A lane of the Volta kernel has p of another row, or not every key of its row once.")
    if (found.source[..., ::2] != found.source[..., 1::2]).any():
        raise DataError("A register of p comes from two lanes of the Volta kernel; no shuffle brings that.")
    return found


def accumulators(row_of: Numbers, key_of: Numbers, keys: int) -> tuple[Numbers, Numbers]:
    """(16, keys) twice: who makes each score, in which accumulator, from the row and key of each lane's operand."""
    lane, element = np.full((ROWS, keys), -1), np.full((ROWS, keys), -1)
    for product in layouts.volta("row", "col"):
        rows, columns = row_of[product.a.thread[:, 0]], key_of[product.b.thread[0]]
        for block in range(keys // BLOCK):
            where = np.ix_(rows, columns + BLOCK * block)
            lane[where], element[where] = product.d.thread, product.d.element + 8 * block
    if (lane < 0).any():
        raise DataError("The four products of the Volta kernel do not make a tile of 16 x 16 scores.")
    return lane, element
