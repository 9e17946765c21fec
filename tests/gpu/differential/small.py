"""Small instructions: conversions to and from fp8, tanh and 2^x of halves, packed f32, maxima of three, redux, prmt."""

from functools import partial

import numpy as np

from tests.emulated import arithmetic
from tests.emulated.attention_case import HERE
from tests.gpu.differential.case import EX2_TOLERANCE, Array, Buffer, Case, Launch

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


def run(rows: int, floats: bool, words: bool, seeds: range) -> list[Launch]:
    """Any words, or floats of sizes that the narrow types can round."""
    given = np.stack([(arithmetic.random_words if words else arithmetic.spread)(seed) for seed in seeds])
    out: Array = np.zeros((len(seeds), rows, 32), np.float32 if floats else np.uint32)
    return [Launch((len(seeds),), (32,), 0, (given, out), (Buffer(0), Buffer(1)), (1,))]


def rows_of(call: str) -> int:
    return 2 if call.startswith(tuple(f"ptx::{name}" for name in PAIRS)) else 1


def cases() -> list[Case]:
    """One case an instruction, on any words and on floats."""
    made = []
    calls = [
        *((call, False, 0.0) for call in arithmetic.EXACT),
        *((call, True, 0.0) for call in EXACT_F32),
        *((call, True, off) for call, off in TOLERANCES.items()),
    ]
    source = HERE / arithmetic.NAME
    for call, floats, off in calls:
        defines = ("CALLS", f"OUT({call})"), ("ROWS", rows_of(call))
        for words in (False, True):
            layout = "any words" if words else "floats"
            case = partial(run, rows_of(call), floats, words)
            made.append(Case(call.replace("ptx::", ""), layout, "bits", "arithmetic", defines, case, off, source))
    return made
