"""What a user and a kernel author do with a feature that was just added: run with it in the tree's place."""

from dataclasses import replace

import numpy as np
import torch

import attention
from attention.choose.choose import choose
from attention.cli.check import named
from attention.kernels.launch.source import source_of, sources_of
from attention.oracle import reference
from attention.problem import AttentionProblem
from attention.timed import cubins
from attention.variant import CudaBuild, by_path
from attention.verify import build_matrix, emulated
from attention.verify.builds import builds_of
from microbench.compile import Cubin, compile_all
from microbench.machine.arch import by_name
from tests.cpu.attention_profiles import hopper_profile

torch.manual_seed(0)
PATHS = ("sm80/forward/software_pipelined", "sm90a/forward/warp_specialised")


def asked() -> AttentionProblem:
    return AttentionProblem(1, 2, 1, 70, 90, 64, dtype="bfloat16", device="cuda", gate=True)


def is_named() -> None:
    assert asked().features == ("gated bias",) and str(asked()).endswith("full gated")
    choice = choose(hopper_profile(), asked())
    assert choice.pick.owner == "smscope" and choice.fallback is None
    assert {"has no gated bias"} <= {refused.reason for refused in choice.refused}
    unserved = choose(hopper_profile(), replace(asked(), dtype="float64"))
    assert unserved.nearest is not None and "bfloat16" in unserved.nearest
    assert any("GATE" in build.asked for build in builds_of(PATHS[0]))


def is_computed_and_differentiated() -> None:
    q, k, v = (torch.randn(1, length, 2, 8, dtype=torch.float64, requires_grad=True) for length in (7, 9, 9))
    gate = torch.randn(2, dtype=torch.float64, requires_grad=True)
    out, lse = attention.flash_attn_func(q, k, v, gate=gate, return_lse=True)
    arrays = [tensor.detach().transpose(1, 2).numpy() for tensor in (q, k, v)]
    expected, expected_lse = reference.attention(*arrays, gate=gate.detach().numpy())
    np.testing.assert_allclose(out.detach().transpose(1, 2), expected, atol=1e-12)
    np.testing.assert_allclose(lse.detach(), expected_lse, atol=1e-12)
    assert torch.autograd.gradcheck(
        lambda *given: attention.flash_attn_func(*given[:3], gate=given[3]), (q, k, v, gate)
    )
    mapped = torch.vmap(lambda g: attention.flash_attn_func(q.detach(), k.detach(), v.detach(), gate=g))
    torch.testing.assert_close(mapped(gate.detach()[None])[0], out.detach())
    try:
        attention.flash_attn_func(q, k, v, gate=torch.ones(3))
    except attention.ProblemError as error:
        assert "gate has shape (3,); give it (2,)" in str(error)


def is_compiled_and_emulated() -> None:
    """`attention check --feature NAME` does it for every tile; here the largest of the most crowded head dim."""
    feature = named("gated")
    for path in PATHS:
        variant, arch = by_path(path), by_name(by_path(path).archs[0])
        problem = replace(build_matrix.with_feature(feature)[-1], head_dim=128, head_dim_v=128)
        largest = max(build_matrix.legal(variant, problem, arch), key=lambda config: config["tile_keys"])
        (made,) = compile_all(sources_of(variant, problem, largest, arch))
        assert isinstance(made, Cubin) and not made.resources.spills, made
        for row in emulated.judged(emulated.cases_with(variant, feature, most=2)):
            assert row.ok and "gated bias" in row.features, row


def is_no_change_to_other_builds() -> None:
    """What was timed and verified without the feature is the same machine code with it in the tree."""
    for path in PATHS:
        variant = by_path(path)
        line = next(each for each in cubins.read(variant) if each.nvrtc)
        asked = CudaBuild(line.kernel, tuple((*line.defines, ("GATE", 0))), 0, 0)
        (made,) = compile_all([source_of(variant.folder, asked, by_name(line.arch))])
        assert isinstance(made, Cubin) and (made.nvrtc != line.nvrtc or made.code_sha256 == line.code_sha256)


is_named()
is_no_change_to_other_builds()
is_computed_and_differentiated()
is_compiled_and_emulated()
