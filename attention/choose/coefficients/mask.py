"""Coefficients of masks: what a score costs, and what comes with tiles of keys and calls."""

from attention.choose.coefficients.coefficient import Coefficient

MASKS = {
    "mask_waits": Coefficient(
        1 / 32,
        "count",
        "16 loads of two scores each are on their way at a time (features/mask.cuh), of one panel of 16 rows of a warp",
    ),
    "wide_mask_waits": Coefficient(1 / 16, "count", "likewise 8, of two floats of 32 bits each"),
    "mask_trips": Coefficient(
        4.0, "count", "to shared memory: a mask's rows have come, the first are read, no box overtakes that, it is told"
    ),
    "seeds": Coefficient(1.25, "count", "LOP3, IMAD or PRMT of a score that begins as its mask, and LDSM: 80 for 64"),
    "mask_tests": Coefficient(1.0, "count", "LOP3 or ISETP asks whether a byte is 0: 64 for 64"),
    "bias_arithmetic": Coefficient(1.0, "count", "FFMA adds a float in units of scores: 64 for 64"),
    "bias_integers": Coefficient(1.0, "count", "PRMT or SHL widens a float of 16 bits: 64 for 64"),
    "mask_wavefronts": Coefficient(
        1 / 8, "count", "a load of 64 scores' mask touches 8 rows, and each is a cycle of the SM's load unit"
    ),
    "laid_out_instructions": Coefficient(
        61.0,
        "rule",
        "for an element of a mask that torch copies to rows of whole 16 bytes: 239 million bools took an H100 0.5 ms",
    ),
    "late_warpgroups": Coefficient(
        0.5,
        "rule",
        "of three, whose rows see their first key behind a first tile: exponentials that are taken again count for so "
        "many, since the others' run beside them; of two warpgroups each one's stand alone. Of a half and all of them "
        "the one with the least regret (set a 24 and 25, b-25 to b-50, use-14 to use-20)",
    ),
    "mask_lines": Coefficient(
        70.0,
        "count",
        "of code: what scores begin as, and tiles that no guess serves. An SM misses 30 to 70 lines a tile of rows "
        "(Nsight Compute, 14 builds of 256 tokens on an H200, code_of_masks.csv)",
    ),
    "seeded_bool_lines": Coefficient(
        0.3, "count", "likewise for each key of scores that begin as bools, which are asked for doubt and hidden anew"
    ),
    "held_lines": Coefficient(192.0, "count", "of code that an SM holds: 24 KiB, and no 32 (instruction_fetch, H200)"),
    "parting_trips": Coefficient(
        8.0,
        "rule",
        "to L2 while blocks that share a mask meet, and while they part: a cluster barrier that releases what was "
        "written, 0.7 us of an empty kernel on an H100 for four trips. Of 4 and 8 the one with the least error",
    ),
    "pair_trips": Coefficient(
        3.5,
        "rule",
        "to DRAM from where both blocks of a pair have read rows of a mask to the coming of the next: steps of less "
        "than 2300 to 2500 cycles missed 100 to 600 at value dims of more than 64, longer ones and blocks by "
        "themselves none (18 problems of sets b; 96 keys took 15 % more than 112 in set 64). Of 2000 to 2600 cycles "
        "all from 2300 on have the same regret",
    ),
    "late_of_pair": Coefficient(
        0.4,
        "rule",
        "of the cycles that a step is shorter than that: one of two warpgroups waits while the other one computes. Of "
        "0.3 to 0.8 the one with the least regret on sets b, and 0.3 with it",
    ),
}
