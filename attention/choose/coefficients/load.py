"""Coefficients of loads: lines that rows touch, what DRAM gives again, what waits in turn."""

from attention.choose.coefficients.coefficient import Coefficient

LOADS = {
    "copied_lines": Coefficient(
        1.0,
        "count",
        "a line that a warp's cp.async touches is a cycle of the SM's load unit, as many bytes of it as it asks for, "
        "and so is a sector that it touches beside what its bytes fill",
    ),
    "parted_line_waits": Coefficient(
        0.5,
        "rule",
        "cycles that a warp whose block has an SM alone waits for each line that a row touches beside those that its "
        "bytes fill: 0.5 to 3.3 by ten calls of one query whose heads lie side by side and one alone (Nsight Compute). "
        "Of none, a quarter, a half and one the one with the least regret among tiles of the decode kernel on sets b "
        "and of use",
    ),
    "drift": Coefficient(
        1 / 40,
        "rule",
        "of its own time a block is apart from the one of the next head, which began beside it: 0 to 0.1 by the bytes "
        "that DRAM gave again (dram__bytes_read, Nsight Compute, 15 calls of split_keys on an H100), 0.041 on average. "
        "Of 1/25, 1/40, 1/65 and none the one with the least regret of up to 32 queries on sets b: by the first heads "
        "of 144, 152 and 200 dims came 7 to 12 % too slow",
    ),
    "missed_sectors": Coefficient(
        0.5,
        "rule",
        "that the L2 misses beside, of a line that two heads' rows share, where blocks do not keep step: 0.6 to 1.1 by "
        "its counters, of which DRAM gives few (Nsight Compute, head dims 112 and 208 on an H200), and none where they "
        "do. Of a half and one the one with the least regret of up to 32 queries on sets b and of use",
    ),
    "step_share": Coefficient(
        1 / 5,
        "rule",
        "of the L2, that loads under way of blocks with an SM each may take for them to keep step: 128 keys of head "
        "dims 96 to 120 on 128 SMs have 12.6 to 15.7 MB under way, and take 7 to 27 % longer than DRAM gives as many "
        "bytes, 64 keys with 6.3 to 8 MB none to 8 (H200; 1.23 of the bytes by counters at head dim 112, "
        "lone_blocks.csv). A seventh and a quarter have more regret, a sixth as much",
    ),
    "missed_granules": Coefficient(
        3 / 4,
        "rule",
        "of granules that two heads share, that takes DRAM's time again at least, where blocks ask by boxes of TMA: "
        "one query came 7 to 10 % too fast at head dims 104 to 136, and 8 to 12 % at 88 where each block has an SM "
        "(tiles of 64 to 128 keys, the fifty-first set b). Nobody has counted whether DRAM gives them again. Of a "
        "quarter, a half, three and all the one with the least regret on sets b",
    ),
    "drifted": Coefficient(
        0.02,
        "rule",
        "by what DRAM takes longer for blocks of warps that do not keep step: of 256 blocks, two an SM, the middle one "
        "took 1 to 2 % longer than of 128 that read as much, and the last one up to 6 (timestamps of each block on an "
        "H200, block_ends.csv). Among tiles of the decode kernel 3 % has the least regret on sets b and of use, and "
        "beside the Hopper forward's 1 %; of 1, 2 and 3 % the one between",
    ),
    "block_loads": Coefficient(
        2.0,
        "count",
        "of a tile its K and its V: all that shared memory holds are at a station of the queue, under way or at hand",
    ),
    "memory_sharers": Coefficient(
        2.0,
        "rule",
        "SMs that wait for each other's loads at L2 and DRAM: those of a TPC. One would wait too long for its own, and "
        "all of them for nothing. Of one to four, 16 and 132 the one with the least regret on sets a of an H100 and of "
        "an H200",
    ),
    "queued_in_step": Coefficient(
        1 / 4,
        "rule",
        "of what loads wait in a queue (queues.py), where each block has an SM: tiles come in turn. Of none, eighths "
        "up to a half and all the one with the least regret on sets b and of use; long calls fit none best",
    ),
}
