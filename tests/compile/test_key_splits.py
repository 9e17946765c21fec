"""Keys of a row on several blocks, as machine code: every register is left once, and read past the L1."""

from dataclasses import replace

import pytest

from attention.kernels.launch.source import sources_of
from attention.kernels.sm70.forward.quad_pair import arguments as quad_pair
from attention.kernels.sm75.forward.register_staged import arguments as register_staged
from attention.problem import AttentionProblem
from attention.variant import Config, Variant, by_path
from attention.verify.build_matrix import at, legal, long
from microbench.compile import require_all
from microbench.machine.arch import by_name

SHAPES = {"sm70/forward/quad_pair": quad_pair.shape_of, "sm75/forward/register_staged": register_staged.shape_of}


def opcodes(variant: Variant, problem: AttentionProblem, config: Config) -> list[str]:
    (cubin,) = require_all(sources_of(variant, problem, config, by_name(variant.archs[0])))
    assert not cubin.resources.spills
    return [each.opcode for each in cubin.instructions()]


@pytest.mark.parametrize("head_dim", [64, 256])
@pytest.mark.parametrize("path", SHAPES)
def test_a_block_leaves_each_of_its_registers_once_and_reads_parts_from_the_l2(path: str, head_dim: int) -> None:
    variant = by_path(path)
    problem = replace(at(long(causal=True), head_dim), dtype="float16")
    able = legal(variant, problem, by_name(variant.archs[0]))
    split = next(config for config in able if config["key_splits"] == 2)
    whole = Config(tuple((axis, 1 if axis == "key_splits" else value) for axis, value in split.values))
    before, after = (opcodes(variant, problem, each) for each in (whole, split))
    shape = SHAPES[path](problem, split)
    words = shape.partial_floats // 4 // shape.threads
    assert after.count("STG.E.128.SYS") - before.count("STG.E.128.SYS") == words
    # Before them the maxima alone: 8 of 16 bytes of each panel of 16 rows.
    assert after.count("LDG.E.128.STRONG.GPU") == words
    assert after.count("LDG.E.64.STRONG.GPU") == shape.warp_rows // 16
    # The count releases what was left before it, and what is read behind it comes from no L1.
    assert after.count("MEMBAR.ALL.GPU") == after.count("ATOMG.E.ADD.S32.STRONG.GPU") == after.count("CCTL.IVALL") == 1
    assert not any("STRONG" in each or each.startswith("MEMBAR") for each in before)
