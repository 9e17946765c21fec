"""Coefficients of code that an SM does not hold yet: lines of 128 bytes.

Where the producer's code lies (`laid_*`) was counted in 882 builds: the formula misses it by 19 lines as a standard
deviation, of 170 to 680.
"""

from attention.choose.coefficients.coefficient import Coefficient

CODE = {
    "code_lines": Coefficient(
        40.0,
        "count",
        "of 128 bytes that a warpgroup runs through for the first time, beside those that grow with a tile: of 148 in "
        "a full call of 128 keys and 64 value dims (SASS from begin to end, without what no such call takes)",
    ),
    "key_lines": Coefficient(
        0.35, "count", "for each key of a tile: a step is 44 of 128 keys, and stands there for a first tile and others"
    ),
    "value_lines": Coefficient(0.29, "count", "for each value dim: rescaling, and one of two ways to store"),
    "group_lines": Coefficient(
        67.0, "count", "likewise where heads of a group share rows, whose places are found one by one: 536 instructions"
    ),
    "code_jumps": Coefficient(
        2.0,
        "count",
        "of a consumer to code that no block has run before, which comes from DRAM: to its own branch, and behind the "
        "loops to where it stores. Straight on, code is fetched ahead (instruction_fetch)",
    ),
    "warp_code_lines": Coefficient(
        130.0,
        "count",
        "likewise of a kernel of warps, from its begin to the end of its loops (150 to 245, some of which no full call "
        "takes) and where it stores (20 to 60)",
    ),
    "warp_dim_lines": Coefficient(0.3, "count", "for each number of a row of K and of V, beside those"),
    "idle_code_lines": Coefficient(
        55.0,
        "count",
        "beside those where blocks may share keys: up to the last product 40 to 66 more in the same tiles, of head "
        "dims 136 to 256 (NVRTC 13.0)",
    ),
    "hidden_panel_instructions": Coefficient(
        200.0,
        "rule",
        "cycles of 16 further rows of a warp in a slice with hidden keys: 85 to 97 instructions that no score asks for "
        "(SASS of four builds), behind each other. Causal calls of up to 1024 tokens missed 400 of two such, at head "
        "dims 72 to 96. Of 100 to 400 the one with the least error on sets b",
    ),
    "idle_instructions": Coefficient(
        20.0,
        "count",
        "of a slice there, which asks whether its warp has rows and finds addresses again: 9 to 25 more than where it "
        "does not (SASS of seven builds)",
    ),
    "idle_hidden_instructions": Coefficient(
        25.0, "count", "beside these of a slice with hidden keys: 43 to 51 more in all where causal, 7 where not"
    ),
    "few_code_lines": Coefficient(
        125.0,
        "count",
        "likewise where warps share rows, to where outputs are stored, without divisions that shifts replace: 141, 143 "
        "and 160 at head dims 64, 128 and 256 of 16 copies a thread. 32 copies have 40 lines more, behind loads that "
        "are on their way",
    ),
    "few_dim_lines": Coefficient(0.07, "count", "for each number of a row of K and of V, beside those"),
    "few_part_lines": Coefficient(
        80.0,
        "count",
        "where keys come in parts: what leaves one, 15, and what adds all of them, 67 to 86 in three ways by how many "
        "there are",
    ),
    "laid_lines": Coefficient(
        171.0, "count", "from a kernel's begin to the last of its producer's code, beside those that grow with a tile"
    ),
    "laid_key_lines": Coefficient(
        0.78, "count", "for each key of a tile, once, and again for each edge of the band, whose steps are its own"
    ),
    "laid_alibi_lines": Coefficient(0.375, "count", "likewise for each key, where there is ALiBi"),
    "laid_softcap_lines": Coefficient(0.645, "count", "likewise for each key, where there is a softcap"),
    "laid_mask_lines": Coefficient(1.76, "count", "likewise for each key, where there is a mask"),
    "laid_crossed_key_lines": Coefficient(0.63, "count", "likewise for each key, where rows cross"),
    "laid_crossed_lines": Coefficient(27.0, "count", "and beside those, where rows cross"),
    "laid_value_lines": Coefficient(0.51, "count", "for each value dim"),
    "laid_range_lines": Coefficient(45.0, "count", "where there are ranges of rows"),
    "laid_group_lines": Coefficient(49.0, "count", "where heads share rows"),
    "laid_part_lines": Coefficient(78.0, "count", "where parts are brought together"),
    "producer_lines": Coefficient(
        71.0, "count", "that the producing thread runs through up to the last box of its first tile of rows"
    ),
    "asked_lines": Coefficient(
        592.0,
        "rule",
        "of a kernel's code that its launch asks for ahead, 74 KiB: more than 64 and less than 80 (instruction_fetch). "
        "Causal calls of few rows took an H200 0.1 to 0.4 us more than the model had where the producer's code ends "
        "there, and 1.8 to 5 where it ends 4 to 10 KiB further on (106 builds and problems of use). Of 64, 68, 72, 74, "
        "76 and 80 KiB those from 72 to 76 have the least regret",
    ),
}
