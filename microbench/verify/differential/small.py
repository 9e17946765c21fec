"""Small instructions: conversions to and from fp8, tanh and 2^x of halves, packed f32, maxima of three, redux, prmt."""

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from microbench.verify.differential.case import EX2_TOLERANCE, Array, Buffer, Case, Launch

SOURCE = Path(__file__).with_name("arithmetic.cu")
# Words, bit for bit.
EXACT = (
    "ptx::prmt(x, y, z)",
    "ptx::prmt(x, y, 0x5410)",
    "ptx::lop3<0xE8>(x, y, z)",
    "ptx::lop3<0x96>(x, y, z)",
    "ptx::lop3<(0xF0 & ~0xCC | 0xAA) & 0xFF>(x, y, z)",
    "ptx::redux_add(x)",
    "ptx::redux_add(int(y))",
    "ptx::redux_min(x)",
    "ptx::redux_max(x)",
    "ptx::redux_min(int(x))",
    "ptx::redux_max(int(x))",
    "ptx::redux_and(x)",
    "ptx::redux_or(x)",
    "ptx::redux_xor(x)",
    "(threadIdx.x < 8 ? ptx::redux_add(x, 0xFFu) : ptx::redux_max(x, ~0xFFu))",
    "ptx::pack_e4m3(fx, fy)",
    "ptx::pack_e5m2(fx, fy)",
    "ptx::f16x2_to_e4m3(x)",
    "ptx::f16x2_to_e5m2(x)",
)
# Both sides may be off by what the PTX ISA grants the GPU, and the emulator by its rounding.
TOLERANCES = {
    "ptx::tanh(fx)": 2.0**-11 + EX2_TOLERANCE,
    "ptx::unpack_f16(ptx::tanh_f16x2(x))": 2.0**-10.987 + 2.0**-11,
    "ptx::unpack_bf16(ptx::tanh_bf16x2(x))": 2.0**-8 + 2.0**-8,
    "ptx::unpack_f16(ptx::ex2_f16x2(x))": 2.0**-9.9 + 2.0**-11,
    "ptx::unpack_bf16(ptx::ex2_bf16x2(x))": 2.0**-7 + 2.0**-8,
}
PAIRS = ("unpack", "fadd2", "fmul2", "ffma2")  # two rows of f32 each
EXACT_F32 = (
    "ptx::fadd2({fx, fy}, {fz, fx})",
    "ptx::fmul2({fx, fy}, {fz, fx})",
    "ptx::ffma2({fx, fy}, {fz, fx}, {fy, fz})",
    "ptx::unpack_f16(x)",
    "ptx::unpack_f16(ptx::e4m3_to_f16x2((unsigned short)x))",
    "ptx::unpack_f16(ptx::e5m2_to_f16x2((unsigned short)x))",
    "ptx::unpack_bf16(x)",
    "ptx::fmax3(fx, fy, fz)",
    "ptx::fmin3(fx, fy, fz)",
    "ptx::redux_max(fx)",
    "ptx::redux_min(fx)",
    "__uint_as_float(ptx::round_tf32(fx))",
)


def spread(seed: int) -> NDArray[np.uint32]:
    """Floats of every size that an f16 or an fp8 can round, and a few that are special."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((3, 32)) * 2.0 ** rng.integers(-14, 14, (3, 32))
    values[:, ::8] = rng.choice([0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, -61440, 2**-10, 3 * 2**-10], (3, 4))
    return values.astype(np.float32).view(np.uint32)


def random_words(seed: int) -> NDArray[np.uint32]:
    """Three words a lane, any."""
    return np.random.default_rng(seed).integers(0, 1 << 32, (3, 32), np.uint32)


def run(rows: int, floats: bool, words: bool, seeds: range) -> list[Launch]:
    """Any words, or floats of sizes that the narrow types can round."""
    given = np.stack([(random_words if words else spread)(seed) for seed in seeds])
    out: Array = np.zeros((len(seeds), rows, 32), np.float32 if floats else np.uint32)
    return [Launch((len(seeds),), (32,), 0, (given, out), (Buffer(0), Buffer(1)), (1,))]


def rows_of(call: str) -> int:
    """How many results an instruction leaves in a lane."""
    return 2 if call.startswith(tuple(f"ptx::{name}" for name in PAIRS)) else 1


def cases() -> list[Case]:
    """One case an instruction, on any words and on floats."""
    made = []
    calls = [
        *((call, False, 0.0) for call in EXACT),
        *((call, True, 0.0) for call in EXACT_F32),
        *((call, True, off) for call, off in TOLERANCES.items()),
    ]
    for call, floats, off in calls:
        defines = ("CALLS", f"OUT({call})"), ("ROWS", rows_of(call))
        for words in (False, True):
            layout = "any words" if words else "floats"
            case = partial(run, rows_of(call), floats, words)
            made.append(Case(call.replace("ptx::", ""), layout, "bits", "arithmetic", defines, case, off, SOURCE))
    return made
