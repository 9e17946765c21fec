"""The Turing forward as machine code: as many products as a tile has, nothing in local memory, blocks as promised."""

from collections import Counter
from dataclasses import replace

import pytest

from attention.kernels.common.staged import blocks
from attention.kernels.launch.source import sources_of
from attention.kernels.sm75.forward.register_staged.arguments import Shape, shape_of
from attention.kernels.sm75.forward.register_staged.variant import VARIANT
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from attention.verify.build_matrix import CROWDED, HEAD_DIMS, at, legal, long
from microbench.compile import Cubin, require_all
from microbench.compile.nvrtc import DEFAULT, matches
from microbench.machine.arch import by_name

PATH, TURING = "sm75/forward/register_staged", by_name("sm75")
CAUSAL = long(causal=True)
VOLTAS = "12.8"  # the NVRTC of constraints/volta.txt


def asked(problem: AttentionProblem, head_dim: int) -> AttentionProblem:
    return replace(at(problem, head_dim), dtype="float16")


def compiled(problem: AttentionProblem, config: Config, arch: str = "sm75", nvrtc: str = DEFAULT) -> Cubin:
    sources = sources_of(by_path(PATH), problem, config, by_name(arch))
    (cubin,) = require_all([replace(source, nvrtc=nvrtc) for source in sources])
    assert matches(cubin.nvrtc, nvrtc), f"NVRTC {nvrtc} is not here: `make ready-dev` brings it"
    return cubin


def fewest(shape: Shape) -> dict[str, int]:
    """Of one warp and tile: products of 16 x 8 x 8 for scores and for outputs; of K and V 16 x 16 elements a load."""
    held = shape.tile_keys * shape.head_dim
    q = 0 if shape.q_in_registers else shape.warp_rows * shape.head_dim // 256
    return {"HMMA": 2 * shape.warp_rows * held // (16 * 8 * 8), "LDSM": 2 * held // 256 + q}


def require_kept(problem: AttentionProblem, config: Config, nvrtc: str = DEFAULT) -> None:
    cubin, shape = compiled(problem, config, nvrtc=nvrtc), shape_of(problem, config)
    counts = Counter(instruction.opcode.split(".")[0] for instruction in cubin.instructions())
    products = [each.opcode for each in cubin.instructions() if each.opcode.startswith("HMMA")]
    assert set(products) == {"HMMA.1688.F32"}
    assert {name: counts[name] for name in ("HMMA", "LDSM")} == fewest(shape)
    assert not counts["LDL"] and not counts["STL"] and not cubin.resources.spills
    assert TURING.limits is not None
    held = blocks(shape, TURING.limits)
    assert held >= 1 and held * shape.smem_bytes <= TURING.limits.smem_bytes
    assert held * shape.warps <= TURING.limits.max_warps
    in_a_warp = -(-32 * cubin.resources.registers // 256) * 256  # what an SM of Turing allots
    assert held * shape.warps * in_a_warp <= TURING.limits.registers


@pytest.mark.parametrize("head_dim", [16, 80, 240, *HEAD_DIMS])
def test_a_tile_has_the_fewest_products_and_no_local_memory(head_dim: int) -> None:
    problem = asked(CAUSAL, head_dim)
    able = legal(VARIANT, problem, TURING)
    for config in dict.fromkeys((able[0], able[-1])):
        require_kept(problem, config)


@pytest.mark.parametrize("head_dim", [80, 128, 256])
def test_the_compiler_of_voltas_lane_keeps_as_much(head_dim: int) -> None:
    problem = asked(CAUSAL, head_dim)
    able = legal(VARIANT, problem, TURING)
    for config in dict.fromkeys((able[0], able[-1])):
        require_kept(problem, config, VOLTAS)


@pytest.mark.slow
@pytest.mark.parametrize("nvrtc", [DEFAULT, VOLTAS])
@pytest.mark.parametrize("head_dim", range(16, 257, 16))
def test_every_legal_tile_has_the_fewest_products_and_no_local_memory(head_dim: int, nvrtc: str) -> None:
    for each in (long(), CAUSAL, CROWDED, long(mask="bool")):
        problem = asked(each, head_dim)
        for config in legal(VARIANT, problem, TURING):
            require_kept(problem, config, nvrtc)


@pytest.mark.parametrize("arch", ["sm80", "sm90a", "sm120a"])
def test_the_same_source_compiles_for_what_came_after(arch: str) -> None:
    """So that a GPU which someone has can run it."""
    problem = asked(CAUSAL, 64)
    cubin = compiled(problem, legal(VARIANT, problem, TURING)[0], arch)
    opcodes = {each.opcode for each in cubin.instructions()}
    assert "HMMA.1688.F32" in opcodes and not cubin.resources.spills


def test_no_text_of_the_kernel_asks_for_an_architecture() -> None:
    assert not any("#if" in file.read_text() for file in by_path(PATH).folder.glob("*.cu*"))


def test_bfloat16_is_refused_with_the_cast_that_helps() -> None:
    said = VARIANT.refusal(replace(CAUSAL, dtype="bfloat16"), TURING)
    assert said is not None and ".to(torch.float16)" in said
    assert VARIANT.refusal(asked(CAUSAL, 64), TURING) is None
