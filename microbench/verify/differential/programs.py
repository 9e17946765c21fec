"""Small kernels made of the wrappers: a GEMM of Volta's instructions, attention of Ampere's and of Hopper's."""

import itertools
from functools import partial
from pathlib import Path

import numpy as np

from microbench.verify.differential.attention_case import attention_case, scale_log2
from microbench.verify.differential.case import ATTENTION_TOLERANCE, Array, Buffer, Case, Defines, Launch, Map
from microbench.verify.differential.tensor_cores import ORDERS

HERE = Path(__file__).parent


def gemm_sm70(a_order: str, b_order: str, f16: bool, seeds: range) -> list[Launch]:
    """C = A B by Volta's instructions, operands by rows or by columns."""
    made = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        top = 3 if f16 else 64
        a, b = (rng.integers(-top, top + 1, shape).astype(np.float16) for shape in ((32, 48), (48, 64)))
        stored = [np.ascontiguousarray(m if o == "row" else m.T) for m, o in ((a, a_order), (b, b_order))]
        arrays: tuple[Array, ...] = (*stored, np.zeros((32, 64), np.float32))
        exact = a.astype(np.float32) @ b.astype(np.float32)
        # With f16 sums the kernel writes the bits of each f16 as a number.
        expected = exact.astype(np.float16).view(np.uint16).astype(np.float32) if f16 else exact
        args = (Buffer(0), Buffer(1), Buffer(2), 32, 64, 48, 0)
        made.append(Launch((1, 2), (128,), 512, arrays, args, (2,), () if f16 else (expected,)))
    return made


def attention(arch: str, dim: int, seeds: range) -> list[Launch]:
    """One head of attention by the instructions of this architecture."""
    made = []
    for seed in seeds:
        case = attention_case(128, seed, dim, "f16" if arch == "sm70" else "bf16")
        arrays = case.q, case.k, case.v, np.zeros((128, dim), np.float32)
        args: tuple[Buffer | Map | int | float, ...] = tuple(map(Buffer, range(4)))
        smem_bytes, threads = 5 * 128 * dim, 128
        if arch == "sm70":
            smem_bytes = 3 * 64 * (2 * dim + 16) + 64 * (2 * 64 + 16)
        if arch == "sm90a":
            inputs = (Map(i, (64, 64), "bf16", 128) for i in range(3))
            args, threads = (*inputs, Map(3, (64, dim), "f32", 0)), 256
            smem_bytes += 64 * dim * 4 + 40
        args = (*args, 128, scale_log2(dim), 0)
        expected = (case.expected.astype(np.float32),)
        made.append(Launch((2,), (threads,), smem_bytes, arrays, args, (3,), expected))
    return made


def cases() -> list[Case]:
    """The GEMM in all orders, and one head of attention each."""
    made = []
    for (a, b), f16 in itertools.product(ORDERS, (False, True)):
        defines: Defines = ("ORDER_A", a), ("ORDER_B", b), *((("F16_SUMS", 1),) if f16 else ())
        layout, run = f"{a}.{b} {'f16' if f16 else 'f32'} sums", partial(gemm_sm70, a, b, f16)
        file = HERE / "gemm_sm70.cu"
        made.append(Case("gemm_sm70", layout, "integers", "gemm_sm70", defines, run, source=file))
    for arch, dim in itertools.product(("sm70", "sm80", "sm90a"), (64, 128)):
        name, run, head = f"attention_{arch}", partial(attention, arch, dim), (("HEAD_DIM", dim),)
        made.append(Case(name, f"head of {dim}", "normal", name, head, run, ATTENTION_TOLERANCE, HERE / f"{name}.cu"))
    return made
