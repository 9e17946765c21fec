"""The Volta forward as machine code: as many products as a tile has, nothing in local memory, blocks as promised."""

from collections import Counter
from dataclasses import replace

import pytest

from attention.kernels.common.staged import blocks
from attention.kernels.launch.source import sources_of
from attention.kernels.sm70.forward.quad_pair.arguments import Shape, shape_of
from attention.kernels.sm70.forward.quad_pair.variant import VARIANT
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from attention.verify.build_matrix import CROWDED, HEAD_DIMS, at, legal, long
from microbench.compile import Cubin, require_all
from microbench.compile.nvrtc import DEFAULT, matches
from microbench.machine.arch import by_name

PATH, VOLTA = "sm70/forward/quad_pair", by_name("sm70")
STEPS = 4  # HMMA.884 of one m8n8k4 with sums in float32
CAUSAL = long(causal=True)
VOLTAS = "12.8"  # the NVRTC of constraints/volta.txt


def asked(problem: AttentionProblem, head_dim: int) -> AttentionProblem:
    return replace(at(problem, head_dim), dtype="float16")


def compiled(problem: AttentionProblem, config: Config, arch: str = "sm70", nvrtc: str = DEFAULT) -> Cubin:
    sources = sources_of(by_path(PATH), problem, config, by_name(arch))
    (cubin,) = require_all([replace(source, nvrtc=nvrtc) for source in sources])
    assert matches(cubin.nvrtc, nvrtc), f"NVRTC {nvrtc} is not here: `make ready-dev` brings it"
    return cubin


def fewest_products(shape: Shape) -> int:
    """Of one warp and tile: 16 x 16 x 4 a product, once for scores and once for outputs."""
    return 2 * shape.warp_rows * shape.tile_keys * shape.head_dim // (16 * 16 * 4) // shape.split


def require_kept(problem: AttentionProblem, config: Config, nvrtc: str = DEFAULT) -> None:
    cubin, shape = compiled(problem, config, nvrtc=nvrtc), shape_of(problem, config)
    counts = Counter(instruction.opcode.split(".")[0] for instruction in cubin.instructions())
    products = [each.opcode for each in cubin.instructions() if each.opcode.startswith("HMMA")]
    assert all(each.startswith("HMMA.884.F32.F32") for each in products)
    assert len(products) == STEPS * fewest_products(shape)
    assert not counts["LDL"] and not counts["STL"] and not cubin.resources.spills
    assert VOLTA.limits is not None
    held = blocks(shape, VOLTA.limits)
    assert held >= 1 and held * shape.smem_bytes <= VOLTA.limits.smem_bytes
    in_a_warp = -(-32 * cubin.resources.registers // 256) * 256  # what an SM of Volta allots
    assert held * shape.warps * in_a_warp <= VOLTA.limits.registers


@pytest.mark.parametrize("head_dim", [16, 80, 240, *HEAD_DIMS])
def test_a_tile_has_the_fewest_products_and_no_local_memory(head_dim: int) -> None:
    problem = asked(CAUSAL, head_dim)
    able = legal(VARIANT, problem, VOLTA)
    for config in dict.fromkeys((able[0], able[-1])):
        require_kept(problem, config)


@pytest.mark.parametrize("head_dim", [80, 128, 256])
def test_the_compiler_of_voltas_lane_keeps_as_much(head_dim: int) -> None:
    problem = asked(CAUSAL, head_dim)
    able = legal(VARIANT, problem, VOLTA)
    for config in dict.fromkeys((able[0], able[-1])):
        require_kept(problem, config, VOLTAS)


@pytest.mark.slow
@pytest.mark.parametrize("nvrtc", [DEFAULT, VOLTAS])
@pytest.mark.parametrize("head_dim", range(16, 257, 16))
def test_every_legal_tile_has_the_fewest_products_and_no_local_memory(head_dim: int, nvrtc: str) -> None:
    for each in (long(), CAUSAL, CROWDED, long(mask="bool")):
        problem = asked(each, head_dim)
        for config in legal(VARIANT, problem, VOLTA):
            require_kept(problem, config, nvrtc)


def test_the_same_source_compiles_for_hopper() -> None:
    """Where no tensor core has m8n8k4, ptxas calls a routine of its own: slow, and right."""
    problem = asked(CAUSAL, 64)
    config = legal(VARIANT, problem, VOLTA)[0]
    assert compiled(problem, config, "sm90a").resources.registers


def test_bfloat16_is_refused_with_the_cast_that_helps() -> None:
    said = VARIANT.refusal(replace(CAUSAL, dtype="bfloat16"), VOLTA)
    assert said is not None and ".to(torch.float16)" in said
    assert VARIANT.refusal(asked(CAUSAL, 64), VOLTA) is None
