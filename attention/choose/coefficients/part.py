"""Coefficients of keys that blocks share: to leave parts, and to bring them together.

The first eight are of kernels of warps, whose last block adds a tile's parts up, the others of warpgroups, where each
block has a share of all rows.
"""

from attention.choose.coefficients.coefficient import Coefficient

PARTS = {
    "arrival_trips": Coefficient(
        1.0, "count", "to L2 before a block counts itself: what it leaves, which the count releases (parts.cuh)"
    ),
    "part_sectors": Coefficient(
        1.25,
        "count",
        "that are stored for each that is full: every other row of a part begins inside of one, and 64 bytes of it "
        "are three for two (parts.cuh); 681 thousand of 541 thousand (lts__t_sectors_op_write, Nsight Compute)",
    ),
    "arrival_instructions": Coefficient(
        120.0, "count", "cycles of a lone warp from what it leaves to its count, by the stall counts of its SASS"
    ),
    "part_jumps": Coefficient(
        1.0,
        "rule",
        "to code that no block has run before, which comes from DRAM: where the last one adds all parts (parts.cuh); "
        "another block has left its own by then. Straight on, code is fetched ahead (instruction_fetch). Of none, one "
        "and two the one with the least error on calls below 17 us of warps with rows of their own (893); where warps "
        "share rows it is none (joined_rows.csv)",
    ),
    "added_instructions": Coefficient(
        37.0,
        "count",
        "cycles of the 18 to 20 instructions for a part of four columns: its address, two loads, its sums",
    ),
    "span_instructions": Coefficient(
        14.0, "count", "likewise of its next four columns: a load and sums, 473 cycles of eight parts for 358"
    ),
    "batch_instructions": Coefficient(120.0, "count", "likewise of a batch: the largest offset, what came before it"),
    "pass_instructions": Coefficient(
        250.0, "count", "likewise of a thread's next four columns: to find them, to divide and to store"
    ),
    "left_at_least": Coefficient(
        60.0, "count", "instructions of a warp that leaves its part of a tile, beside a store for each word of outputs"
    ),
    "shared_part_jumps": Coefficient(
        1.0,
        "rule",
        "likewise where a warpgroup leaves its part, counts itself, waits and brings its share together: of one, two "
        "and three the one with the least regret on sets b and of use (H200), where rows are shared by the blocks that "
        "there are",
    ),
    "part_lines": Coefficient(
        107.0, "count", "of code that a warpgroup runs through for parts: to leave, to wait, to bring together (SASS)"
    ),
    "part_found_instructions": Coefficient(
        340.0,
        "count",
        "cycles before a block's first loads beside those of a whole tile, by the stall counts of its SASS: 862 for "
        "521, as a number is divided by parts, and keys are",
    ),
    "keys_around_rows": Coefficient(
        100.0,
        "rule",
        "that a tile of rows counts for beside its own, where tiles are dealt one by one: its first softmax, last "
        "product and outputs. Of none, 100, 150 and 250 the one with the least regret on sets b and of use",
    ),
    "part_tiles": Coefficient(
        3.0,
        "rule",
        "tiles of keys that a part counts as beside its own, to find the SM that ends last: begin and end take 2.3 us "
        "for tiles of 1.0 (an H200, 112 keys, head dim 128, by the model's own terms). Of one to four three has the "
        "least regret on sets b and of use, with four as good: a second part comes 1.1 us later than was counted",
    ),
    "await_trips": Coefficient(
        3.0, "count", "to L2 behind the last part: it is counted, others see the count, and ask for what was left"
    ),
    "shared_part_instructions": Coefficient(
        780.0,
        "count",
        "cycles of a lone warp from its last part to its share of all rows, by the stall counts of its SASS: 206 "
        "instructions, of divisions most of all",
    ),
    "run_instructions": Coefficient(
        850.0, "count", "likewise of each run of that share: 114 instructions to find it, 229 to divide and to store"
    ),
    "run_part_instructions": Coefficient(
        170.0,
        "count",
        "likewise of each of its parts: 670 of 333 instructions for four, whether there are so many or not",
    ),
}
