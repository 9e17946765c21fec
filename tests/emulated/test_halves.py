"""Value dims that no launch holds, by each kernel's own launcher: two launches, which together are right."""

from typing import Any

import pytest
import torch

from attention.call import Extras
from attention.kernels.common.layout import addresses
from attention.kernels.launch.forms import ROWS_OF_HEADS
from attention.op.launched import bringing, launched
from attention.op.operands import Operands
from attention.op.plan import Plan
from attention.problem import AttentionProblem
from attention.variant import Config, Variant, by_path
from attention.verify import emulated
from attention.verify.builds import Build
from attention.verify.problems import Case
from microbench.machine.arch import by_name

PATHS = (
    "sm80/forward/software_pipelined",
    "sm80/forward/split_keys",
    "sm90a/forward/split_keys",
    "sm90a/forward/warp_specialised",
    "sm100a/forward/tensor_memory",
)
PACKED: dict[str, Any] = {"varlen": True, "tokens_q": 210, "tokens_kv": 260, "alignment": "bottom_right"}
LENGTHS = ((140, 200), (70, 60))
# Value dims whose halves follow one another, or overlap; and what is asked beside.
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "512, causal": (512, {"causal": True}),
    "272, packed and causal": (272, {"causal": True, "sinks": True} | PACKED),
    "368, ranges": (368, {"ranges": True}),
    "336, a window, ALiBi and softcap": (336, {"window": (50, 20), "alibi": True, "softcap": 5.0}),
    "320, a mask": (320, {"mask": "bool"}),
}
OFTEN = "272, packed and causal"


def config_of(variant: Variant, problem: AttentionProblem) -> Config:
    arch = by_name(variant.archs[0])
    assert variant.refusal(problem, arch) is None and variant.illegal is not None
    return next(each for each in variant.configs() if variant.illegal(problem, each, arch) is None)


def served(path: str) -> list[Any]:
    """The cases of a kernel, all but one of them slow."""
    found = []
    for name in CASES:
        if set(problem_of(name).features) <= by_path(path).features:
            found.append(pytest.param(path, name, marks=() if name == OFTEN else pytest.mark.slow))
    return found


def problem_of(name: str) -> AttentionProblem:
    value_dim, asked = CASES[name]
    return AttentionProblem(*(2, 4, 2, 140, 200, 64, value_dim), dtype="bfloat16", device="cuda", **asked)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("path", "name"), [each for path in PATHS for each in served(path)])
def test_both_halves_are_right_in_every_column(path: str, name: str) -> None:
    problem, variant = problem_of(name), by_path(path)
    build = Build(path, (64, 64), problem.dtype, config_of(variant, problem), frozenset(), variant.archs[0])
    lengths = LENGTHS if problem.varlen else ()
    (row,) = emulated.judged([Case(0, 0, build, problem, ("bshd", "bhsd", "sliced"), "normal", lengths)])
    assert row.ok, row.reason


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", ["sm80/forward/software_pipelined", "sm90a/forward/warp_specialised"])
def test_a_known_call_with_features_computes_what_a_judged_one_does(path: str) -> None:
    """Of new tensors each time, in one frame, whose second launch leaves nothing for the next first one."""
    variant = by_path(path)
    problem = AttentionProblem(2, 2, 2, 64, 64, 64, 272, dtype="bfloat16", device="cuda", mask="bool", sinks=True)
    plan = Plan(problem, config_of(variant, problem), variant.load(), "smscope", None)
    operands = Operands(("sinks", "mask"), lambda query, extras: extras, ROWS_OF_HEADS)
    rng, serve = torch.Generator().manual_seed(0), None
    with emulated.emulating():
        for _ in range(3):
            inputs = [torch.randn(2, 64, 2, width, generator=rng).bfloat16() for width in (64, 64, 272)]
            given = [torch.randn(2, generator=rng), torch.rand(2, 1, 64, 64, generator=rng) < 0.5]
            if serve is None:
                ready = launched(plan, *inputs, ROWS_OF_HEADS)
                assert ready is not None
                serve = bringing(ready, operands, inputs[0], inputs[1], given)
            where = addresses(*inputs)
            assert where is not None
            found = serve(*inputs, where, given).transpose(1, 2)
            extras = Extras(sinks=given[0], mask=given[1].expand(2, 2, 64, 64))
            views = [each.transpose(1, 2) for each in inputs]
            assert torch.equal(found, plan.run(*views, problem, plan.config, extras)[0])
