"""The warp's tensor cores: m8n8k4 of Volta in all orders, m16n8k8 and m16n8k16 of Ampere."""

import itertools
from functools import partial

import numpy as np

from microbench.verify.differential import layouts
from microbench.verify.differential.case import F16_TOLERANCE, F32_TOLERANCE, Buffer, Case, Defines, Launch, Values
from microbench.verify.differential.operands import NUMBERS, answers, fragments, operands, product

ORDERS = tuple(itertools.product(("row", "col"), repeat=2))


def mma_sync(kind: str, k: int, values: Values, seeds: range) -> list[Launch]:
    """One mma.sync of 16-bit floats or of tf32."""
    per_word = 1 if kind == "tf32" else 2
    a, b, c = operands(values, seeds, kind, (16, k), (k, 8), (16, 8), True)
    (ra, ka), (kb, cb), (rd, cd) = layouts.mma_a(k, per_word), layouts.mma_b(k, per_word), layouts.mma_accumulator()
    arrays = fragments(a[:, ra, ka], kind), fragments(b[:, kb, cb], kind), np.ascontiguousarray(c[:, rd, cd])
    exact = product(values, a, b, c)
    expected = answers(None if exact is None else exact[:, rd, cd])
    return [Launch((len(seeds),), (32,), 0, arrays, (Buffer(0), Buffer(1), Buffer(2)), (2,), expected)]


def volta(a_order: str, b_order: str, f32: bool, values: Values, seeds: range) -> list[Launch]:
    """One m8n8k4, operands by rows or by columns."""
    a, b, c = operands(values, seeds, "f16", (4, 8, 4), (4, 4, 8), (4, 8, 8), f32)
    pair, (rd, cd) = layouts.quad_pair(), layouts.volta_accumulator(f32)
    (ra, ka), (cb, kb) = layouts.volta_operand(a_order == "row"), layouts.volta_operand(b_order == "col")
    d = np.ascontiguousarray(c[:, pair, rd, cd])
    sums = d if f32 else d.astype(np.float16)
    arrays = fragments(a[:, pair, ra, ka], "f16"), fragments(b[:, pair, kb, cb], "f16"), sums
    exact = product(values, a, b, c)
    expected = answers(None if exact is None else exact[:, pair, rd, cd])
    return [Launch((len(seeds),), (32,), 0, arrays, (Buffer(0), Buffer(1), Buffer(2)), (2,), expected)]


def cases() -> list[Case]:
    """Every wrapper, order and type of sums."""
    return [*_volta(), *_ampere()]


def _volta() -> list[Case]:
    made = []
    kinds: tuple[Values, ...] = ("integers", "normal")
    for f32, (a, b), values in itertools.product((True, False), ORDERS, kinds):
        sums, words = ("float", 8) if f32 else ("unsigned", 4)
        defines: Defines = (
            ("MMA", f"mma_m8n8k4<ptx::Order::{a},ptx::Order::{b}>"),
            *(("D_TYPE", sums), ("D_WORDS", words), ("A_WORDS", 2), ("B_WORDS", 2)),
        )
        off = 0.0 if values == "integers" else F32_TOLERANCE if f32 else F16_TOLERANCE
        layout, run = f"{a}.{b} {'f32' if f32 else 'f16'} sums", partial(volta, a, b, f32, values)
        made.append(Case("mma_m8n8k4", layout, values, "mma", defines, run, off))
    return made


def _ampere() -> list[Case]:
    made = []
    shapes = ((16, "f16"), (16, "bf16"), (8, "f16"), (8, "bf16"), (8, "tf32"))
    for (k, kind), (values, off) in itertools.product(shapes, NUMBERS):
        name, per_word = f"mma_m16n8k{k}_{kind}", 1 if kind == "tf32" else 2
        defines: Defines = (
            *(("MMA", name), ("D_TYPE", "float"), ("D_WORDS", 4)),
            *(("A_WORDS", 16 * k // 32 // per_word), ("B_WORDS", 8 * k // 32 // per_word)),
        )
        made.append(Case(name, "row.col", values, "mma", defines, partial(mma_sync, kind, k, values), off))
    return made
