"""Mistakes of a Blackwell forward by someone who had read the PTX ISA alone, put into our kernel.

The author knew no kernel, no emulator and no test of ours: a list in prose, of twelve mistakes (numbered here), twins
of some, and six spares (S). Each mistake has the author's guess of how likely a good emulator misses it. None of the
twelve was left out. These of their forms have no place here:

    3   the lane by the warp's number within its role: our roles begin at multiples of four warps, where it is right
    9   a mask of both blocks in a cluster of four: our clusters have two
    10  an arrival before wait::ld: outputs are drained before the barrier of all threads; no dealloc on an early
        exit: there is one exit (test_planted_sm100a plants it without)
    6   the author's grey case, one fence by who issues behind the barrier: not planted. The emulator asks for the
        writer's own, and reports it
    S2  and S3 stand in test_planted_sm100a as others wrote them ('ready counts the softmax alone', 'V is described as
        K-major')
"""

from dataclasses import dataclass, replace

from attention.variant import Config
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_planted import Bug
from tests.emulated.forward_sm100a import config_of

WRONG = "^(out|lse): "
LOST, STRAYED = "deadlock: .*mbarrier", "^wrote beside lse"


@dataclass(frozen=True)
class Blind:
    """A mistake, the smallest problem found in which it is one, and the author's guess in percent that it is missed."""

    guess: int
    bug: Bug
    case: ForwardCase
    blocks: int = 1


# Two tiles of rows, 256 and 44, and three of keys, the last one of 22: for one block. Six stages of the ring: a tile of
# rows goes round it once, so that the next one begins at stage 0 in any case, and in the other phase.
CASE = ForwardCase(heads_q=1, heads_kv=1, head_dim=128, seq_q=300, seq_kv=150, spread=12.0)
CALM = replace(CASE, spread=1.0)  # maxima grow, and by less than what corrects outputs
HEADS = replace(CASE, heads_q=2, seq_q=140, seq_kv=20)
HALF = replace(CASE, seq_q=20, seq_kv=32)  # half of the rows of a box, as many bytes as one of its two panels
PACKED = replace(CALM, lengths=((140, 150), (20, 70)))
SPARE = replace(CALM, lengths=((300, 20),), spare=220)  # behind the sequence there is room for all of its last tile
PAIR = replace(CASE, heads_q=2, seq_kv=130)

FORWARD, LOAD, MULTIPLY, CLEAR = "forward_sm100a.cu", "load.cuh", "multiply.cuh", "clear.cuh"
SOFTMAX, CORRECT, BAND = "softmax.cuh", "correct.cuh", "features/band.cuh"
SCORES, VALUES = "void multiply_scores", "void multiply_values"
SEES = "if (work.sees_nothing()) continue;"
RUNS = "self.run(tiles_of(work));"
EXPECT = "ptx::mbarrier_arrive_expect(full + 8 * ring.stage(), bytes);"
EXPECT_LESS = EXPECT.replace("bytes)", "bytes / rows * min(rows, work.keys - (work.last - 1 - tile) * kKeys))")
OUTPUTS = "ptx::tcgen05_ld_32x32b(o, from);"
STEPS = "tile > 0 || i > 0"
LAST = "query_tile == kQueryTiles - 1"
NOT_GIVEN_BACK = Bug(MULTIPLY, VALUES, f"if ({LAST}) commit(at.kv_empty + 8 * v.stage());")
GIVEN_BACK = "commit(at.kv_empty + 8 * v.stage())"
NO_MORE = "if (tile_at.x == kNoTile) break;"
DRAINED = (
    "if (tile_at.x == kNoTile) {"
    "if (self.values.count)"
    " ptx::mbarrier_wait(at.o_full + 8 * (kQueryTiles - 1), self.values.count / kQueryTiles - 1 & 1);"
    "ptx::tcgen05_fence_after(); ptx::tcgen05_dealloc<kGroup>(memory, kColumns); break; }"
)
ALLOCATED = "ptx::tcgen05_alloc<kGroup>(at.tensor_memory, kColumns);"
FREED = "if (warp_number() == kIssuer) ptx::tcgen05_dealloc<kGroup>(ptx::load_shared(at.tensor_memory), kColumns);"
NOT_FREED = Bug(FORWARD, "  meet();\n  if", FREED)
RISES = "__any_sync(~0u, exceeds(s, state, launch.slack))"
MOVES = "[&] { float lost[1]; return raise_maxima<false>(s, state, lost, launch.scale_log2) && false; }()"
UNGUARDED = Bug(CORRECT, "void finish_outputs", "row < work.queries", "true")
TURNED = "turn.count += kQueryTiles;"
END = "min(work.keys, end + (kCausal || !kPackGqa ? further : 0)) - column"
KV = "kv = q + kQueryTiles * kQBytes"


def given_back_by(wrong: str) -> Bug:
    """Both commits that give stages of K and V back."""
    k, v = (Bug(MULTIPLY, SCORES, f"commit(at.kv_empty + 8 * {ring}.stage());", wrong.format(ring)) for ring in "kv")
    return replace(k, says=LOST, also=(v,))


OF_ONE = {
    # 1, in the loader and the issuer.
    "PHASE_RESET_AT_EACH_TILE": Blind(
        15,
        Bug(
            *(LOAD, "next = kDynamic", SEES, f"{SEES} ring = {{}};"),
            says=f"{LOST}|more arrivals",
            also=(Bug(MULTIPLY, "void multiply(", RUNS, f"{{ self.next = {{}}; {RUNS} }}"),),
        ),
        CASE,
    ),
    # 2: bytes that make no whole panel hang, others end the phase early.
    "EXPECTS_BYTES_IN_BOUNDS": Blind(35, Bug(LOAD, "load_keys", EXPECT, EXPECT_LESS, LOST), CASE),
    "EXPECTS_BYTES_IN_BOUNDS_OF_HALF": Blind(
        35, Bug(LOAD, "load_keys", EXPECT, EXPECT_LESS, "race: |more bytes were copied"), HALF
    ),
    # 3
    "LANE_FIELD_0": Blind(
        25, Bug(CORRECT, "void put_piece", OUTPUTS, OUTPUTS.replace("from)", "from & 0xFFFF)"), "reaches lanes"), CASE
    ),
    # 4
    "STEPS_RUN_PAST_THE_PANEL": Blind(
        10,
        Bug(
            *(MULTIPLY, SCORES, "((panel * kRows * kSpan + within) >> 4)", "2 * i", "starts at row 1 of the eight"),
            also=(Bug(MULTIPLY, SCORES, "((panel * kHeldKeys * kSpan + within) >> 4)", "2 * i"),),
        ),
        CASE,
    ),
    # 5, and its twin.
    "P_WITHOUT_WAIT_ST": Blind(
        40, Bug(SOFTMAX, "void step(", "ptx::tcgen05_wait_st();", says="race: .*tcgen05.st .*not waited for"), CASE
    ),
    "P_WITHOUT_FENCE_AFTER": Blind(
        55, Bug(MULTIPLY, VALUES, "ptx::tcgen05_fence_after();", says="without tcgen05.fence::after_thread_sync"), CASE
    ),
    # 7, and its twin. How many turns went before is what a flag set before the loop would say.
    "ACCUMULATES_ACROSS_TILES": Blind(
        20, Bug(MULTIPLY, VALUES, STEPS, "values.count >= kQueryTiles || i > 0", WRONG), CASE
    ),
    "FIRST_KEYS_KEEP_THEIR_LAST_STEP": Blind(20, Bug(MULTIPLY, VALUES, STEPS, "tile > 0", WRONG), CASE),
    # 8, and its twin.
    "COMMIT_BEFORE_THE_LAST_STEP": Blind(
        30,
        Bug(
            *(MULTIPLY, VALUES, "p + 8 * i"),
            f"(({LAST} && i == kKeys / 16 - 1 ? {GIVEN_BACK} : void()), p + 8 * i)",
            "race: cp.async.bulk.tensor load",
            also=(NOT_GIVEN_BACK,),
        ),
        CASE,
    ),
    "COMMIT_BY_ANOTHER_THREAD": Blind(
        30,
        Bug(
            *(MULTIPLY, VALUES, "values.advance();"),
            f"if ({LAST} && threadIdx.x % 32 == 1) {GIVEN_BACK}; values.advance();",
            "race: cp.async.bulk.tensor load",
            also=(NOT_GIVEN_BACK,),
        ),
        CASE,
    ),
    # 10, and two of its variants.
    "DEALLOC_BEFORE_THE_DRAIN": Blind(
        35, Bug(MULTIPLY, "void multiply(", NO_MORE, DRAINED, "race: tcgen05.dealloc", also=(NOT_FREED,)), CASE
    ),
    "DEALLOC_OF_HALF": Blind(
        35, replace(NOT_FREED, wrong=FREED.replace("kColumns", "kColumns / 2"), says="is no allocation"), CASE
    ),
    "ALLOC_AFTER_RELINQUISH": Blind(
        35, Bug(FORWARD, "", ALLOCATED, f"ptx::tcgen05_relinquish<kGroup>(); {ALLOCATED}", "alloc after"), CASE
    ),
    # 11, and its twin.
    "RESCALED_BY_THE_THREAD": Blind(
        25,
        Bug(CORRECT, "void step(", "__any_sync(~0u, factor != 1.f)", "factor != 1.f", "mismatched collective"),
        CASE,
    ),
    "MAXIMUM_MOVES_UNSAID": Blind(25, Bug(SOFTMAX, "void step(", RISES, f"({RISES} || {MOVES})", WRONG), CALM),
    # 12: with one block the next head comes later, and is right again; the last one has none behind it.
    "LSE_UNGUARDED": Blind(40, replace(UNGUARDED, says=STRAYED), HEADS),
    "LSE_UNGUARDED_BESIDE_A_BLOCK": Blind(40, replace(UNGUARDED, says="race between blocks: write"), HEADS, blocks=2),
    "LSE_GUARDED_BY_THE_FIRST_TILE": Blind(
        40, replace(UNGUARDED, wrong="row - query_tile * kRows < work.queries", says=STRAYED), HEADS
    ),
    # S1
    "S_GIVEN_BACK_BEFORE_WAIT_LD": Blind(
        45,
        Bug(
            *(SOFTMAX, "void load_scores", "ptx::tcgen05_wait_ld();"),
            says="race: .*tcgen05.ld .*not waited for",
            also=(Bug(SOFTMAX, "arrive_at_issuer", TURNED, f"ptx::tcgen05_wait_ld(); {TURNED}"),),
        ),
        CASE,
    ),
    # S4
    "ONE_KEY_TOO_MANY": Blind(50, Bug(BAND, "void hide_outside", END, f"{END} + 1", WRONG), CALM),
    # S5
    "STAGES_OFF_THE_PATTERN": Blind(
        50, Bug("config.cuh", "explicit Rooms", f"{KV};", f"{KV} + 128;", "starts at row 1 of the eight"), CASE
    ),
}
OF_PACKED = {
    # 6
    "FENCED_BY_THE_ELECTED_THREAD": Blind(
        30,
        Bug(
            *(CLEAR, "void clear(", "ptx::fence_proxy_async();", "if (ptx::elect_one()) ptx::fence_proxy_async();"),
            "proxy: tcgen05.mma.*without fence.proxy.async",
        ),
        PACKED,
    ),
    # 12 once more, sharper than its author's: all that it writes lies in lse, and in rows that nobody asks for.
    "LSE_UNGUARDED_OVER_SPARE_ROWS": Blind(40, replace(UNGUARDED, says="^wrote lse of a row of no sequence"), SPARE),
    # S4: of the next sequence.
    "ONE_KEY_OF_THE_NEXT_SEQUENCE": Blind(50, Bug(BAND, "void hide_outside", END, f"{END} + 1", WRONG), PACKED),
}
OF_A_PAIR = {
    # 9, both ways that its author names.
    "COMMIT_SIGNALS_ONE_BLOCK": Blind(
        10,
        given_back_by("ptx::tcgen05_commit_multicast<2>(at.kv_empty + 8 * {}.stage(), 1 << ptx::cluster_rank());"),
        PAIR,
        blocks=2,
    ),
    "COMMIT_WITHOUT_MULTICAST": Blind(
        10, given_back_by("ptx::tcgen05_commit<2>(at.kv_empty + 8 * {}.stage());"), PAIR, blocks=2
    ),
    # S6
    "INIT_UNFENCED": Blind(
        55,
        Bug(FORWARD, "init_barriers(const Rooms", "ptx::fence_mbarrier_init();", says="without fence.mbarrier_init"),
        PAIR,
        blocks=2,
    ),
}

# Fewer stages than shared memory holds: so the smallest problems go round the ring, and what lies in it may be moved.
BUILDS: tuple[tuple[dict[str, Blind], Config, tuple[tuple[str, int], ...]], ...] = (
    (OF_ONE, config_of(64), (("STAGES", 6),)),
    (OF_PACKED, config_of(64), ()),
    (OF_A_PAIR, config_of(64, dynamic=0, cta_group=2), (("STAGES", 4),)),
)
