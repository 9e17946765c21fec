"""Ten mistakes in the sm100a forward by someone who had read the PTX ISA and the kernel's text, and no test of ours.

Those by someone who had read the PTX ISA alone are in test_blind_isa_sm100a.

Each stands as it was written, but for what makes it an expression or a statement of its own (forward_planted.Bug).
All ten are found in every mode; data/verification/blind_bugs.csv has them. At the first run nine were: the third needs
sequences of unlike lengths. With the author's first example, of equal ones, parities stay alike, and there the mistake
is none.
"""

from dataclasses import dataclass, replace
from functools import cache

import pytest

from attention.kernels.sm100a.forward.tensor_memory.arguments import KERNEL
from attention.variant import Config
from microbench.emulator import MODES, Mode
from microbench.verify import tables
from microbench.verify.tables import MISSED, BlindRow
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted, said
from tests.emulated.forward_sm100a import PATH, config_of, run

OF_KERNEL = {row.bug: row for row in tables.read(BlindRow) if row.kernel == KERNEL}
SCHEDULE = {"blocks": 1, "section": 4}
# Three tiles of rows of three sequences for one block, cut short, causal, and up to six tiles of keys: rings go round.
PACKED = ForwardCase(
    heads_q=1, heads_kv=1, lengths=((300, 350), (20, 90), (140, 128)), spare=40, softcap=50.0, right=60, spread=12.0
)
MANY = replace(PACKED, heads_q=4, lengths=((20, 90), (30, 70)) * 2)
UNEVEN = replace(PACKED, heads_q=3, lengths=((300, 350), (20, 90)))  # no stage of the ring has all first tiles of V
UNLIKE = ForwardCase(heads_q=1, seq_q=300, seq_kv=300, head_dim=192, head_dim_v=128, softcap=50.0, spread=12.0)
WIDE = ForwardCase(heads_q=1, seq_q=140, seq_kv=300, head_dim=256, softcap=50.0, spread=12.0)
NARROW = replace(WIDE, head_dim=96)


@dataclass(frozen=True)
class Blind:
    """A mistake, and where it is one."""

    bug: Bug
    case: ForwardCase


OF_PACKED = {
    # The cleaner orders its zeros with a generic fence.
    "ZEROS_BEHIND_A_GENERIC_FENCE": Blind(
        Bug("clear.cuh", "for (int byte = begin * kSpan", "ptx::fence_proxy_async();", "__threadfence_block();"), PACKED
    ),
    # Rows to clear begin at keys % tile, whatever the last tile is.
    "CLEARS_FROM_KEYS_MODULO_TILE": Blind(
        Bug("clear.cuh", "const unsigned tile = at.kv", "work.keys - (work.last - 1) * kKeys", "work.keys % kKeys"),
        PACKED,
    ),
    # The cleaner waits for kv_raw by the parity of the ring.
    "RAW_BY_THE_PARITY_OF_THE_RING": Blind(
        Bug("clear.cuh", "const Ring<kStages> v{", "parities >> v.stage() & 1", "v.parity()"), UNEVEN
    ),
    # V's stage is given back behind the first query tile's product.
    "V_GIVEN_BACK_TOO_EARLY": Blind(
        Bug(
            "multiply.cuh",
            "tile > 0 || i > 0);",
            "if (query_tile == kQueryTiles - 1) commit(at.kv_empty + 8 * v.stage());",
            "if (query_tile == 0) commit(at.kv_empty + 8 * v.stage());",
        ),
        PACKED,
    ),
    # The factor is stored only where a maximum was raised.
    "FACTOR_STORED_WHERE_RAISED": Blind(
        Bug(
            "softmax.cuh",
            "float factor[1] = {1.f};",
            "ptx::store_shared(at.factor + (turn.stage() * kRows + thread) * 4, __float_as_uint(factor[0]));",
            "if (__any_sync(~0u, factor[0] != 1.f)) "
            "ptx::store_shared(at.factor + (turn.stage() * kRows + thread) * 4, __float_as_uint(factor[0]));",
        ),
        PACKED,
    ),
    # Tile_empty does not count the cleaner.
    "CLEANER_NOT_COUNTED": Blind(
        Bug(
            "forward_sm100a.cu",
            "init_barriers(const Rooms& at)",
            "init(at.tile_empty, 2, kSoftmaxWarps + 4 + 2 + kOwnLengths);",
            "init(at.tile_empty, 2, kSoftmaxWarps + 4 + 2);",
        ),
        MANY,
    ),
}
OF_UNLIKE = {
    # P V is told the head dim for its N.
    "HEAD_DIM_FOR_N_OF_P_V": Blind(
        Bug(
            "multiply.cuh",
            "tcgen05_mma_f16_ts<kGroup>(",
            "kInstruction",
            "ptx::tcgen05_instruction(kOperand, kOperand, kRows, kHeadDim, ptx::Major::K, ptx::Major::MN)",
        ),
        UNLIKE,
    ),
    # K's barrier expects the bytes of a tile of V.
    "K_EXPECTS_BYTES_OF_V": Blind(
        Bug("load.cuh", "const auto load_keys =", "panels.kCount * rows * panels.kSpan", "kVBytes"), UNLIKE
    ),
}
OF_WIDE = {
    # Outputs of one query tile are not waited for.
    "OUTPUTS_NOT_WAITED_FOR": Blind(
        Bug("correct.cuh", "if (!first) {", "await_values(query_tile);", "ptx::tcgen05_fence_after();"), WIDE
    ),
}
OF_NARROW = {
    # The step of Q K is written for panels of 128 bytes.
    "STEP_FOR_PANELS_OF_128_BYTES": Blind(
        Bug(
            "multiply.cuh",
            "within = i * 16 % kWidth * 2;",
            "ptx::tcgen05_mma_f16_ss<kGroup>(to, q_tile + ((panel * kRows * kSpan + within) >> 4),\n"
            "                                        k_tile + ((panel * kHeldKeys * kSpan + within) >> 4), "
            "kInstruction, i > 0);",
            "ptx::tcgen05_mma_f16_ss<kGroup>(to, q_tile + ((i / 4 * kRows * kSpan + i % 4 * 32) >> 4), "
            "k_tile + ((i / 4 * kKeys * kSpan + i % 4 * 32) >> 4), kInstruction, i > 0);",
        ),
        NARROW,
    ),
}
BUILDS: tuple[tuple[dict[str, Blind], Config], ...] = (
    (OF_PACKED, config_of(64, polynomial=4)),
    (OF_UNLIKE, config_of(64)),
    (OF_WIDE, config_of(64)),
    (OF_NARROW, config_of(64)),
)
ROWS = {name: OF_KERNEL[name] for blind, _ in BUILDS for name in blind}


@cache
def armed(build: int) -> Kernel:
    """A build with the mistakes that its dims make possible."""
    blind, config = BUILDS[build]
    case = next(iter(blind.values())).case
    return planted(Kernel(PATH, config, case.problem), "forward_sm100a.cu", [each.bug for each in blind.values()])


# A build takes ten seconds; packed sequences have most of them.
EVERY = [
    pytest.param(build, name, marks=() if build == 0 else pytest.mark.slow, id=name)
    for build, (blind, _) in enumerate(BUILDS)
    for name in blind
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("build", "name"), EVERY)
def test_a_blind_mistake_ends_as_the_table_says_and_nothing_is_said_of_none(build: int, name: str, mode: Mode) -> None:
    blind = BUILDS[build][0]
    found = [outcome(run, armed(build), mode, blind[name].case, at, **SCHEDULE) for at in (0, 1 + [*blind].index(name))]
    assert found[0] == ""
    assert said(found[1], KERNEL) == getattr(ROWS[name], mode)


def test_every_mistake_is_found_in_every_mode() -> None:
    assert all(MISSED not in row.today for row in ROWS.values())


def test_the_first_run_stays_on_record() -> None:
    assert [row.bug for row in ROWS.values() if not row.first_run] == ["RAW_BY_THE_PARITY_OF_THE_RING"]
    assert {row.first_run for row in ROWS.values()} == {"", " ".join(MODES)}
