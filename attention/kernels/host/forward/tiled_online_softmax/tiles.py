"""The tiled online softmax itself, in Numba: one call draws tiles until none is left.

A tile is block_q queries of one head against all the keys they see, block_kv at a time. Inside, queries go in panels of
as many as VECTORS registers hold, and everything of a panel is stored [row][lane], one lane a query:

    queries [D]   outputs [Dv]   highest [1]   sums [1]           per panel
    factors [1]   ones [1]   scores [block_kv]                    once per thread

so that scores = K Q^T and outputs += V^T P both read K and V in place. Scores are in the log2 domain: scale * log2(e)
is folded into the queries once, and every exponential is an exp2. Addresses are integers; sizes are elements unless
named bytes.
"""

import math

import numba
import numpy as np

from attention.kernels.host.forward.tiled_online_softmax.grid import Grid, Operand
from attention.kernels.host.forward.tiled_online_softmax.registers import PRODUCT_ROWS
from attention.kernels.host.forward.tiled_online_softmax.vector import (
    added_block,
    added_half,
    added_single,
    exponentiate,
    fresh_block,
    fresh_single,
    load,
    raise_maximum,
    store,
    take_ticket,
)

LOG2_E = math.log2(math.e)
LN_2 = math.log(2.0)
HALF_ROWS = PRODUCT_ROWS // 2
# A register sums this many products before they are added to the long sum. The rounding errors of n products in runs of
# L grow as sqrt(n L + n^2 / L): least at L = sqrt(n), for head dims to 256 and for some thousand keys.
DIM_RUN = 32
KEY_RUN = 64
jit = numba.njit(nogil=True, error_model="numpy")


@jit
def one_tile(zero, grid, memory, scale, batch, head, first):  # type: ignore[no-untyped-def]
    """Queries [first, first + block_q) of one head, against all keys that they see."""
    size = grid.element_bytes
    row_bytes = grid.lanes * size
    panels = (min(grid.block_q, grid.seq_q - first) + grid.lanes - 1) // grid.lanes
    panel_bytes = (grid.dim + grid.dim_v + 2) * row_bytes
    factors = memory + panels * panel_bytes
    ones = factors + row_bytes
    scores = ones + row_bytes
    for lane in range(grid.lanes):
        store(zero, 1.0, ones + size * lane)

    query = grid.query.address + size * (batch * grid.query.batch + head * grid.query.head)
    key = grid.key.address + size * (batch * grid.key.batch + head // grid.group * grid.key.head)
    value = grid.value.address + size * (batch * grid.value.batch + head // grid.group * grid.value.head)
    for panel in range(panels):
        begin(zero, grid, memory + panel * panel_bytes, query, scale, first + panel * grid.lanes)

    seen = min(grid.seq_kv, first + grid.block_q + grid.right)
    for start in range(max(0, first + grid.left), seen, grid.block_kv):
        for panel in range(panels):
            row = first + panel * grid.lanes
            # Keys past what the panel's last query sees are not even computed.
            keys = min(grid.block_kv, seen - start, row + grid.lanes + grid.right - start)
            if keys <= 0 or start + keys <= row + grid.left:
                continue
            queries = memory + panel * panel_bytes
            outputs = queries + grid.dim * row_bytes
            highest = outputs + grid.dim_v * row_bytes
            sums = highest + row_bytes
            multiply_keys(zero, grid, scores, key + size * start * grid.key.row, queries, keys, ones)
            if start + keys - 1 > row + grid.right:
                mask_right(zero, grid, scores, row + grid.right - start, keys)
            if start < row + grid.lanes - 1 + grid.left:
                mask_left(zero, grid, scores, row + grid.left - start, keys)
            raise_maximum(zero, highest, factors, scores, keys)
            exponentiate(zero, scores, highest, sums, factors, keys)
            multiply_values(zero, grid, outputs, value + size * start * grid.value.row, scores, keys, factors, ones)

    out = grid.out.address + size * (batch * grid.out.batch + head * grid.out.head)
    lse = grid.lse + size * (batch * grid.heads + head) * grid.seq_q
    for panel in range(panels):
        finish(zero, grid, memory + panel * panel_bytes, out, lse, first + panel * grid.lanes)


@jit
def begin(zero, grid, panel, query, scale, row):  # type: ignore[no-untyped-def]
    """Transpose one panel of queries, scaled, to [D][lane], with zeros past the last; empty its outputs and state."""
    size = grid.element_bytes
    row_bytes = grid.lanes * size
    rows = min(grid.lanes, grid.seq_q - row)
    for column in range(grid.dim):
        source = query + size * (row * grid.query.row + column)
        target = panel + row_bytes * column
        for lane in range(rows):
            store(zero, load(zero, source + size * grid.query.row * lane) * (scale * LOG2_E), target + size * lane)
        for lane in range(rows, grid.lanes):
            store(zero, 0.0, target + size * lane)
    outputs = panel + grid.dim * row_bytes
    highest = outputs + grid.dim_v * row_bytes
    for cell in range(grid.dim_v * grid.lanes):
        store(zero, 0.0, outputs + size * cell)
    lowest = -np.finfo(zero).max  # finite, so that a row which sees nothing never subtracts two infinities
    for lane in range(grid.lanes):
        store(zero, lowest, highest + size * lane)
        store(zero, 0.0, highest + row_bytes + size * lane)


@jit
def multiply_keys(zero, grid, scores, key, queries, keys, ones):  # type: ignore[no-untyped-def]
    """scores[0:keys, lane] = K Q^T, DIM_RUN terms of the head dimension at a time."""
    size, lanes, step = grid.element_bytes, grid.lanes, grid.key.row
    for start in range(0, grid.dim, DIM_RUN):
        depth = min(DIM_RUN, grid.dim - start)
        some_queries = queries + size * start * lanes
        done = 0
        while done < keys:
            block = keys - done >= PRODUCT_ROWS
            target, source = scores + size * done * lanes, key + size * (done * step + start)
            if start == 0 and block:
                fresh_block(zero, target, source, step, 1, some_queries, depth, 0)
            elif start == 0:
                fresh_single(zero, target, source, step, 1, some_queries, depth, 0)
            elif block:
                added_block(zero, target, source, step, 1, some_queries, depth, ones)
            else:
                added_single(zero, target, source, step, 1, some_queries, depth, ones)
            done += PRODUCT_ROWS if block else 1


@jit
def multiply_values(zero, grid, outputs, value, scores, keys, factors, ones):  # type: ignore[no-untyped-def]
    """outputs[0:Dv, lane] = outputs * factors + V^T P, KEY_RUN keys at a time."""
    size, lanes, step = grid.element_bytes, grid.lanes, grid.value.row
    for start in range(0, keys, KEY_RUN):
        depth = min(KEY_RUN, keys - start)
        some_scores = scores + size * start * lanes
        factor = factors if start == 0 else ones
        done = 0
        while done < grid.dim_v:
            target, source = outputs + size * done * lanes, value + size * (start * step + done)
            if grid.dim_v - done >= PRODUCT_ROWS:
                added_block(zero, target, source, 1, step, some_scores, depth, factor)
                done += PRODUCT_ROWS
            elif grid.dim_v - done >= HALF_ROWS:
                added_half(zero, target, source, 1, step, some_scores, depth, factor)
                done += HALF_ROWS
            else:
                added_single(zero, target, source, 1, step, some_scores, depth, factor)
                done += 1


@jit
def mask_left(zero, grid, scores, offset, keys):  # type: ignore[no-untyped-def]
    """Query `lane` of the panel sees keys from `offset + lane` of this tile; those before become -inf."""
    for key in range(min(keys, offset + grid.lanes - 1)):
        for lane in range(max(0, key - offset + 1), grid.lanes):
            store(zero, -np.inf, scores + grid.element_bytes * (key * grid.lanes + lane))


@jit
def mask_right(zero, grid, scores, offset, keys):  # type: ignore[no-untyped-def]
    """Query `lane` of the panel sees keys up to `offset + lane` of this tile; the rest become -inf."""
    for key in range(max(0, offset + 1), keys):
        for lane in range(min(grid.lanes, key - offset)):
            store(zero, -np.inf, scores + grid.element_bytes * (key * grid.lanes + lane))


@jit
def finish(zero, grid, panel, out, lse, row):  # type: ignore[no-untyped-def]
    """Divide by the sums, transpose back to (S, Dv), and write lse; a query that saw nothing gives 0 and -inf."""
    size = grid.element_bytes
    row_bytes = grid.lanes * size
    outputs = panel + grid.dim * row_bytes
    highest = outputs + grid.dim_v * row_bytes
    for lane in range(min(grid.lanes, grid.seq_q - row)):
        total = load(zero, highest + row_bytes + size * lane)
        inverse = 0.0 if total == 0.0 else 1.0 / total
        target = out + size * (row + lane) * grid.out.row
        for column in range(grid.dim_v):
            store(zero, load(zero, outputs + row_bytes * column + size * lane) * inverse, target + size * column)
        store(zero, load(zero, highest + size * lane) * LN_2 + math.log(total), lse + size * (row + lane))


def draw(fields, counter, memory, scale, zero):  # type: ignore[no-untyped-def]
    """Draw tiles from the shared counter until none is left; `fields` is a Grid, `memory` this thread's scratch.

    `zero` carries the element type into the vector code.
    """
    grid = Grid(
        Operand(fields[0], fields[1], fields[2], fields[3]),
        Operand(fields[4], fields[5], fields[6], fields[7]),
        Operand(fields[8], fields[9], fields[10], fields[11]),
        Operand(fields[12], fields[13], fields[14], fields[15]),
        fields[16],
        fields[17],
        fields[18],
        fields[19],
        fields[20],
        fields[21],
        fields[22],
        fields[23],
        fields[24],
        fields[25],
        fields[26],
        fields[27],
        fields[28],
        fields[29],
        fields[30],
    )
    while True:
        item = take_ticket(counter)
        if item >= grid.items:
            return
        # The longest tiles of a causal head come first, so that the last ones to be drawn are short.
        tile = grid.tiles - 1 - item % grid.tiles
        head = item // grid.tiles
        one_tile(zero, grid, memory, scale, head // grid.heads, head % grid.heads, tile * grid.block_q)
