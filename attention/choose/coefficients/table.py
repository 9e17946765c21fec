"""Every number of the models of warpgroups and of warps that is neither a constant of a profile nor a size.

Each has its derivation. COUNTS are read from the SASS of the builds of 128 keys (nvdisasm, NVRTC 12.9) or from the
kernel's text; PUBLISHED from vendors' documents. RULES name an effect and hold no fitted number; they were chosen among
alternatives by timings (set a of the H200's campaigns, and since the second verdict the H100's sets b and of use), so
that those timings are no proof of them: a set b that is drawn later is.
"""

from attention.choose.coefficients.code import CODE
from attention.choose.coefficients.coefficient import Coefficient
from attention.choose.coefficients.load import LOADS
from attention.choose.coefficients.mask import MASKS
from attention.choose.coefficients.part import PARTS

BYTES = 2  # of float16 and bfloat16
PRODUCT = 2  # FLOP of one multiply-add
GROUP_ROWS = 64  # M of wgmma
FIRST_KEYS, FIRST_VALUES = 96, 64  # up to so many keys, of more value columns, K is given back first (kKeysFirst)
LANES = 32
LINE = 128  # bytes of a line of L2, and of the widest panel that TMA swizzles
SECTOR = 32  # of which four are a line
GRANULE = 64  # that DRAM gives at once (dram__bytes_read of rows that end inside of one, Nsight Compute on an H100)
SLOT = 64  # that a slice of L2 gives in a clock
STORED = 32  # that an SM gives the L2 in one (of the peak of l1tex__m_l1tex2xbar_write_bytes 709 GB/s are 12.2 %, H200)
FRAGMENT = 16  # rows, and numbers along a row, of what ldmatrix.x4 fetches, and M and K of mma.sync m16n8k16
FRAGMENT_TURNS = 4  # of the banks, 128 bytes each, that ldmatrix.x4 takes
SCHEDULERS = 4  # of an SM, each with its own tensor core, MUFU, FP32 lanes and ALU
FLOAT_BYTES = 4  # of float32, in which blocks leave their parts of outputs
COPY = 16  # bytes that a thread's cp.async copies
TMA_ROWS = 16  # bytes at whose multiples rows begin that TMA reads
COLUMNS = 4  # of a row that a thread adds up over all parts
FEW_PARTS = 8  # come in one batch, and more in larger ones where registers allow (added_parts.cuh)
FEWEST_PARTS, SOME_SPANS, MOST_SPANS = 4, 2, 4  # of so many columns, of a row at a time: 8 parts of two, or 4 of four
COMBINING_THREADS = 128  # of a block of FlashAttention-2's kernel that adds parts up
COMBINING_BLOCKS = 2048 // COMBINING_THREADS  # of which an SM's threads have room for so many
COMBINED = 512  # numbers that such a block loads at a time, of whole rows (kBlockM in run_flash_splitkv_fwd)
STATE_FLOATS = 4  # beside a row's outputs: its offset and sum, in 16 bytes
RUN = 4  # words of 16 bytes a lane, and parts, that a warp brings together at a time (sm90a split_keys/partials.cuh)
WORD_COLUMNS = 8  # of outputs, that such words of a warp are
SHARED_STATE_FLOATS = 8  # of a row of theirs: four lanes leave the softmax of two
SYSTEM_BYTES = 1024  # of shared memory that the system takes of each block (CUDA C++ programming guide)
THREAD_SHARE = 2  # keys of a tile for each score that a thread holds: 64 rows of 128 threads


TABLE = {
    "maxima": Coefficient(
        0.5, "count", "VIMNMX3 takes two scores and the maximum so far: 30 and two more for 64 scores a thread"
    ),
    "conversions": Coefficient(0.5, "count", "F2FP packs two scores: 32 for 64"),
    "arithmetic": Coefficient(2.0, "count", "FFMA before and FADD behind each exponential: 64 and 64 for 64"),
    "exponentials": Coefficient(1.0, "count", "MUFU.EX2: 64 for 64"),
    "softcap_special": Coefficient(2.0, "count", "tanh takes MUFU.EX2 and MUFU.RCP: 64 and 64 for 64"),
    "softcap_arithmetic": Coefficient(4.0, "count", "tanh takes two FMUL, one FADD and one FFMA"),
    "alibi_arithmetic": Coefficient(
        1.5, "count", "FADD gives a distance, which rows of a pair share: 32 for 64; FFMA subtracts slope times that"
    ),
    "guess_serves": Coefficient(
        13.0,
        "count",
        "powers of 2 that a thread's p of a tile add up to at most, of a tile that a guess serves (kMostOfTile)",
    ),
    "hidden": Coefficient(1.0, "count", "FSEL takes -inf for a score that is not seen: 64 for 64"),
    "hidden_maxima": Coefficient(0.5, "count", "FMNMX takes one score, where VIMNMX3 takes two: 64 for 64 against 30"),
    "first_compared": Coefficient(0.42, "count", "ISETP of the end of the keys in a first tile: 27 for 64"),
    "edge_compared": Coefficient(0.92, "count", "ISETP of each edge of a band: 58 or 59 for 64, 115 to 118 for two"),
    "alu_per_clk_sm": Coefficient(
        64.0, "published", "16 lanes of the ALU a scheduler, which all but FP32 and MUFU take"
    ),
    "issued_per_clk_sm": Coefficient(128.0, "published", "four schedulers issue an instruction of 32 lanes each"),
    "product_waits": Coefficient(1.0, "count", "a step waits for its scores; its second wait is part of the products"),
    "shared_waits": Coefficient(
        3.0,
        "count",
        "try_wait on K, the turn or the try_wait on V, the vote: each a trip to shared memory at least",
    ),
    "handed_waits": Coefficient(
        2.0,
        "rule",
        "of those the ones on K and V, which take a lone warpgroup as long as a hand-over, since nothing runs beside: "
        "one query of 8 heads came 55 to 100 cycles a tile too fast before. Several wait beside each other",
    ),
    "exponential_waits": Coefficient(1.0, "count", "the first exponential's result, before which no pair is packed"),
    "arithmetic_waits": Coefficient(3.0, "count", "dependent: scale, sum, pack"),
    "maxima_waits": Coefficient(
        5.0, "count", "likewise where a tile is searched: levels of a tree of maxima over 64 scores (three inputs)"
    ),
    "exposed": Coefficient(
        1.0,
        "rule",
        "of two warpgroups one's integers (maxima, masks, conversions) run beside the other's exponentials, and one's "
        "are exposed. Of five rules (none, one's, all, each for masks apart) the one with the least regret on set a",
    ),
    "exposed_at_edges": Coefficient(
        2.0,
        "rule",
        "of so many warpgroups where an edge meets a tile of keys, as theirs meet it one after the other: of one and "
        "two the one with the least regret of causal rows, packed ones and windows (1,293 problems, H200)",
    ),
    "guessed_ahead": Coefficient(
        1 / 8,
        "count",
        "exponentials of a thread and value dim before p V of the tile before is awaited: 8 or 9 of 64, 9 or 10 of 80, "
        "11 or 12 of 96, 15 or 16 of 128, of 64 to 128 keys alike (16 builds whose heads share rows). Builds that take "
        "all of them ahead are no faster: a warp issues its products one behind another, exponentials behind the last",
    ),
    "hidden_from": Coefficient(
        3.0,
        "rule",
        "from three warpgroups on two hide the third's maxima and conversions: cycles a key at head dims 64 and 128 "
        "agree. What features ask of the ALU stays exposed: so an H100 took ALiBi and bool masks",
    ),
    "searched_beside": Coefficient(
        1.0,
        "rule",
        "of a warpgroup's product of scores, beside which the other one's first tile is searched where both meet an "
        "edge together: windows of 128 keys took 4 to 8 % more than one search at head dim 64, and short causal rows "
        "at 128 none. Of none, one and two the one with the least regret on sets b and of use; of none without edges",
    ),
    "turns": Coefficient(
        1.0,
        "rule",
        "a trip to shared memory for each warpgroup of three, which takes its turn at a barrier (consume.cuh), where "
        "their products last longer than their softmaxes, and for the first one elsewhere: without it all came 2 to "
        "7 % too fast at head dims 80 to 192 (H200). Of none, one and two the one with the least regret on set a and "
        "the sets of use",
    ),
    "distances_begin": Coefficient(
        200.0,
        "rule",
        "cycles of each tile of keys with ALiBi, beside those of its scores: 64 keys came 4 to 5 % too fast beside 96 "
        "at head dims 64, 128 and 192 (43 problems of sets b), which 150 to 280 explain",
    ),
    "others_scores": Coefficient(
        0.65,
        "rule",
        "of three warpgroups the share of two others' scores that are multiplied beside the first one's softmax: as "
        "its own end theirs have begun. With all of them three came 1 to 4 % too fast beside two, 6 with a softcap at "
        "head dim 128. Of 0.5 to 1 the one with the least regret on sets b",
    ),
    "crossed_ends": Coefficient(
        0.5,
        "rule",
        "of a first softmax, or of the last values before it, where tiles of rows cross: one warpgroup's are beside "
        "the other's. Of none, one half and all the one with the least error on set a",
    ),
    "between_rows": Coefficient(
        76.0, "count", "instructions from a tile of rows' number to its first product, taken as each waiting for one"
    ),
    "found_instructions": Coefficient(
        650.0,
        "count",
        "cycles of the producing thread from its last V to the next rows' K, by the stall counts and waits of its "
        "SASS: 577 in a full call, 728 in a causal one, which divides once more",
    ),
    "search_instructions": Coefficient(
        107.0,
        "count",
        "likewise of each halving, where a tile's sequence is searched for: 74 and a load of a length that L1 holds",
    ),
    "room_instructions": Coefficient(40.0, "count", "likewise to wait for a tile's room and say how many bytes come"),
    "box_instructions": Coefficient(70.0, "count", "likewise of each box of it: 66 to 72 (a loop around UTMALDG)"),
    "box_trips": Coefficient(
        2.0,
        "rule",
        "to where a box comes from, until a ring has it: its tensor map and its rows. Q took 1430 to 1750 cycles by "
        "clocks in the kernel where somebody waited for it (H200), and a trip to DRAM is 667. Of one, one and a half, "
        "two and two and a half the one with the least regret of up to 32 queries on sets b and of use",
    ),
    "beside_consumers": Coefficient(
        2.0,
        "rule",
        "times as long as counted, since two warps of consumers take turns with it at its scheduler: 1.6 to 2.4 by "
        "clocks in the kernel (H200, head dims 64 to 128). Of 1, 1.5, 2 and 3 the one with the least regret on set a",
    ),
    "stored": Coefficient(
        2.0, "count", "instructions a warp and value dim of the epilogue: 275, 409, 674 for 64, 128, 256 (and 141)"
    ),
    "stored_at_least": Coefficient(141.0, "count", "the epilogue's instructions beside those"),
    "slice_products": Coefficient(2.0, "count", "scores wait for their last product, and the next slice for p V's"),
    "slice_trips": Coefficient(3.0, "count", "the first fragment of K and of V, and the vote whether p stayed small"),
    "slice_arithmetic": Coefficient(
        8.0, "count", "dependent: scale, four sums of a row's scores, two panels' and their test, pack"
    ),
    "hidden_arithmetic": Coefficient(1.0, "count", "FMUL by the scale, which may have come before: far rows"),
    "hidden_trips": Coefficient(3.0, "count", "a panel of 16 rows: two shuffles of a quad for its maxima, and a vote"),
    "fragments_ahead": Coefficient(
        2.0,
        "count",
        "that ptxas mostly fetches before their products where Q stays in registers: between lies a median of 3.5 to "
        "10 products, two of each fragment. Where Q is fetched too it is as far ahead as the text says",
    ),
    "shared_fragments_ahead": Coefficient(
        4.0,
        "count",
        "likewise where warps share rows, of K and, beside the exponentials, of V: 4 to 8 are fetched before the first "
        "product (SASS of key_loop.cuh)",
    ),
    "turn_trips": Coefficient(
        1.0,
        "rule",
        "a trip to L2 at the barrier behind every tile of keys: it waits for the slowest warp and the loads of the "
        "tile. Of none, one half, one and two the one with the least error on set a; where warps share rows, of none, "
        "one half, one and one and a half the one with the least regret on sets a, b and of use together, and behind "
        "tiles that load another one alone: 1240 cycles with a load, 890 without (decode_stamps.csv)",
    ),
    "barrier_waits": Coefficient(
        1.0,
        "rule",
        "for a mask behind every barrier, where one block of more warps than schedulers has its SM alone: they begin a "
        "tile of keys together, and none has work while the others wait. Of none, one half and one",
    ),
    "block_trips": Coefficient(
        6.0, "count", "to shared memory at a block's begin and end: barriers, fragments of Q, votes on the sums"
    ),
    "block_instructions": Coefficient(
        1100.0,
        "count",
        "cycles of a lone warp, by the stall counts and waits of its SASS: 780 to 885 before its first copies (330 to "
        "403 instructions, of divisions most of all), 330 to find its place in the output",
    ),
    "few_block_instructions": Coefficient(
        1100.0,
        "rule",
        "likewise where blocks may share keys. Stamps of one thread say 1100 to 1150 before the first copies, of later "
        "waves too (decode_stamps.csv), and SASS 516, where heads, parts and groups are powers of two; 243 come behind "
        "all keys until rows are left. Of 1100, 1300 and 1500 the one with the least regret of up to 32 queries "
        "on sets b and of use",
    ),
    "block_turn_trips": Coefficient(
        4.0,
        "rule",
        "to L2 from a block's end to the next one's begin in its place, where warps have rows of their own and blocks "
        "may share keys: later ones took 800 to 2800 cycles more than was counted, and the first 400 to 1800 less. Of "
        "none, two, four and six the one with the least regret of such kernels on sets b and of use",
    ),
    "empty_block_instructions": Coefficient(
        260.0, "count", "likewise of a block for which no keys are left: 210 to 261 (36 to 40 instructions)"
    ),
    "empty_block_trips": Coefficient(
        2.0,
        "rule",
        "to L2 from a block's end to the next one's begin in its place, where none has keys: one of 24,576 blocks, of "
        "which one in 64 has some, took an H200 1150 to 1300 cycles. Of none, one, two and three the one with the "
        "least error",
    ),
    **CODE,
    **LOADS,
    **MASKS,
    **PARTS,
    "tile_instructions": Coefficient(
        100.0,
        "count",
        "cycles of a lone warp from a tile's barrier to its first fragment, where warps share rows, beside its copies: "
        "60 instructions (SASS of key_loop.cuh)",
    ),
    "copy_instructions": Coefficient(
        2.0, "count", "likewise of each copy: 94 instructions where a thread makes 16 copies, and 144 where it makes 32"
    ),
    "joined_row_instructions": Coefficient(
        85.0,
        "count",
        "likewise of a warp that leaves eight rows for those that share them, beside a store for every eight columns: "
        "130, 150, 164 and 280 at 64, 96, 128 and 256 (key_warps.cuh)",
    ),
    "joined_store_cycles": Coefficient(6.0, "count", "of such a store, with its share of addresses"),
    "joined_instructions": Coefficient(
        400.0,
        "count",
        "likewise of a thread from the barrier behind these to its four columns of a row, of all warps that share it",
    ),
    "joined_span_instructions": Coefficient(35.0, "count", "likewise of its next four columns"),
    "first_load_instructions": Coefficient(
        950.0,
        "count",
        "cycles from a persistent block's begin to its first loads of K and Q, by the stall counts and waits of its "
        "SASS: 820 to 1030 for K (230 instructions, of divisions and of barriers' begin most of all), 112 more for Q",
    ),
    "length_trips": Coefficient(
        2.0,
        "rule",
        "to DRAM before the first loads, where sequences' own lengths lie on the device: 0.4 to 1.1 us of an H100's "
        "calls below 20 us. Of none, one, two and three the one with the least error on those",
    ),
    "first_loads": Coefficient(2.0, "count", "a block's first loads from DRAM: the tensor map, by it the first tile"),
}


of = {name: each.value for name, each in TABLE.items()}.__getitem__  # a choice asks five hundred times
