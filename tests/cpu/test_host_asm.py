"""microbench.measure.host_asm: the compiled loop holds what its probe says, or the probe fails."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from microbench.compile.host_code import REORDERED, provable
from microbench.errors import ContractError
from microbench.measure.host_asm import (
    LoopContract,
    check_chain,
    check_loop,
    innermost_loops,
    require_chain,
    require_loop,
)

X = np.linspace(0.5, 0.9, 256, dtype=np.float32)


def chain(length: int, fastmath: set[str] | bool) -> Callable[..., Any]:
    @provable(fastmath)
    def kernel(x: Any, out: Any, add: Any) -> None:
        for i in range(x.size):
            value = out[i]
            for _ in range(length):
                value = value * x[i] + add
            out[i] = value

    kernel(X, X.copy(), np.float32(0.25))
    return kernel


@pytest.mark.parametrize("length", [4, 8, 12])
def test_a_loop_with_its_multiply_adds_passes_and_is_described(length: int) -> None:
    assert " fma " in require_loop(chain(length, {"contract"}), LoopContract(length, 3))


@pytest.mark.parametrize("length", [7, 9, 6, 4, 16])
def test_a_chain_with_some_removed_added_or_fused_fails(length: int) -> None:
    with pytest.raises(ContractError, match="removed, added, fused or spilled"):
        require_loop(chain(length, {"contract"}), LoopContract(8, 3))


def test_a_loop_whose_multiplies_are_not_fused_fails() -> None:
    with pytest.raises(ContractError, match="without one packed multiply-add"):
        require_loop(chain(8, False), LoopContract(8, 3))


def test_a_reduction_counts_its_folded_loads() -> None:
    @provable(REORDERED)
    def dot(a: Any, b: Any) -> Any:
        total = np.float32(0)
        for i in range(a.size):
            total += a[i] * b[i]
        return total

    @provable(REORDERED)
    def square(a: Any) -> Any:
        total = np.float32(0)
        for i in range(a.size):
            total += a[i] * a[i]
        return total

    dot(X, X)
    square(X)
    assert " fma " in require_loop(dot, LoopContract(1, 2))
    with pytest.raises(ContractError):
        require_loop(square, LoopContract(1, 2))


def scalar_chain(length: int, fastmath: set[str] | bool) -> Callable[..., Any]:
    @provable(fastmath)
    def body(value: float, factor: float, add: float, laps: int) -> float:
        for _ in range(laps):
            for _ in range(length):
                value = value * factor + add
        return value

    body(np.float32(0.5), np.float32(0.5), np.float32(0.5), 3)
    return body


def test_a_scalar_chain_passes_however_llvm_unrolls_it() -> None:
    assert require_chain(scalar_chain(8, {"contract"}), 8) == "8 fma f32"


@pytest.mark.parametrize("length", [7, 9, 16])
def test_a_scalar_chain_of_another_length_fails(length: int) -> None:
    with pytest.raises(ContractError, match=f"declares 8 multiply-adds a lap, but did {length} and {7 * length} in 1"):
        require_chain(scalar_chain(length, {"contract"}), 8)


def test_a_scalar_chain_that_is_not_fused_fails() -> None:
    with pytest.raises(ContractError, match="left separate ones"):
        require_chain(scalar_chain(8, False), 8)


def test_a_scalar_chain_of_two_interleaved_ones_fails() -> None:
    @provable()
    def two(value: float, factor: float, add: float, laps: int) -> float:
        other = value + factor
        for _ in range(laps):
            for _ in range(4):
                value = value * factor + add
                other = other * factor + add
        return value + other

    two(np.float32(0.5), np.float32(0.5), np.float32(0.5), 3)
    with pytest.raises(ContractError, match="not every multiply-add"):
        require_chain(two, 8)


def loop_of(*lines: str) -> str:
    return "\n    ".join((".LBB0_6:", *lines, "jg .LBB0_6"))


X86_FMA, ARM_FMA = "vfmadd213ss %xmm2, %xmm1, %xmm0", "fmadd s0, s0, s1, s2"


@pytest.mark.parametrize(
    "text",
    [
        loop_of(*16 * [X86_FMA], "addq $-2, %rax"),  # Intel: two laps a turn
        loop_of(X86_FMA),
        loop_of(X86_FMA, "vmovaps %xmm0, %xmm3", "vfmadd213ss %xmm2, %xmm1, %xmm3", "vmovaps %xmm3, %xmm0"),
        loop_of("vfmadd231ss (%rdx), %xmm1, %xmm0", "vfmadd231ss (%rdx), %xmm1, %xmm0"),
        loop_of(*4 * [ARM_FMA], "subs x8, x8, #1"),
        loop_of("fmadd s3, s0, s1, s2", "fmadd s0, s3, s1, s2"),
        loop_of(*3 * [ARM_FMA], "fmadd d0, d1, d2, d3"),  # of another type, beside the chain
    ],
)
def test_the_machine_code_of_a_chain_is_recognised(text: str) -> None:
    check_chain(text, "kernel")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (loop_of(X86_FMA, "vfmadd213ss %xmm2, %xmm1, %xmm3"), "not every"),
        (loop_of(X86_FMA, "vfmadd213ss %xmm2, %xmm1, %xmm3", "vmovaps %xmm0, %xmm3"), "not every"),
        (loop_of(X86_FMA, "vmovss (%rdx), %xmm0"), "not every"),
        (loop_of("fmadd s3, s0, s1, s2", "fmadd s3, s0, s1, s2"), "not every"),
        (loop_of(X86_FMA, "vaddss %xmm2, %xmm0, %xmm0"), "left separate"),
        (loop_of(ARM_FMA, "fmul s0, s0, s1"), "left separate"),
        (loop_of("vfmadd213ps %ymm2, %ymm1, %ymm0"), "made none"),
        (X86_FMA, "made none"),
    ],
)
def test_machine_code_that_is_no_chain_fails(text: str, says: str) -> None:
    with pytest.raises(ContractError, match=says):
        check_chain(text, "kernel")


X86 = """
.LBB0_1:
    movq    %rax, %rcx
.LBB0_7:
    vmovups (%rcx,%r10,4), %zmm6
    vfmadd231ps (%rdx,%r10,4), %zmm6, %zmm2
    vfmadd231ps {extra}, %zmm6, %zmm3
    addq    $16, %r10
    jne .LBB0_7
    vfmadd231ps (%rdx), %zmm6, %zmm2
    jmp .LBB0_1
"""
ARM = """
LBB0_7:
    ldp     q0, q1, [x9], #32
    ldp     q2, q3, [x10], #32
    fmla    v4.4s, v2.4s, v0.4s
    fmla    v5.4s, v3.4s, v1.4s
    subs    x8, x8, #8
    b.ne    LBB0_7
"""
SVE = """
.LBB0_7:
    ld1w    { z0.s }, p0/z, [x9, x8, lsl #2]
    ld1w    { z1.s }, p0/z, [x10, x8, lsl #2]
    fmla    z2.s, p0/m, z1.s, z0.s
    b.mi    .LBB0_7
"""


@pytest.mark.parametrize(
    ("text", "contract"),
    [
        (X86.format(extra="%zmm1"), LoopContract(1, 1)),
        (X86.format(extra=".LCPI0_1(%rip)"), LoopContract(1, 1)),
        (X86.format(extra="4(%rdx){1to16}"), LoopContract(1, 1)),
        (X86.format(extra="%zmm1").replace("addq", "vbroadcastss (%rdx), %zmm4\n    addq"), LoopContract(1, 1)),
        (ARM, LoopContract(1, 2)),
        (SVE, LoopContract(1, 2)),
    ],
)
def test_constants_and_broadcasts_are_no_loads_and_pairs_are_two(text: str, contract: LoopContract) -> None:
    assert " fma " in check_loop(text, contract, "kernel")
    with pytest.raises(ContractError):
        check_loop(text, LoopContract(contract.fma + 1, contract.memory), "kernel")


def test_a_spilled_register_breaks_the_contract() -> None:
    with pytest.raises(ContractError, match="spilled"):
        check_loop(X86.format(extra="64(%rsp)"), LoopContract(1, 1), "kernel")


def test_only_loops_without_loops_in_them_are_innermost() -> None:
    (loop,) = innermost_loops(X86)
    assert loop[0] == ".LBB0_7:" and "jne" in loop[-1]
