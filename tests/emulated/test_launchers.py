"""Our kernels by their own launchers, on the emulator: the problems, the poison and the judge of a GPU's campaign."""

import pytest
import torch

from attention.call import Extras
from attention.cli.check import named
from attention.errors import LaunchError
from attention.kernels.common.family import SERVED, dealt
from attention.kernels.common.layout import addresses
from attention.kernels.launch.forms import ROWS_OF_HEADS
from attention.kernels.launch.machine import stand_ins
from attention.op.launched import bringing, launched
from attention.op.operands import Operands
from attention.op.plan import Plan
from attention.problem import AttentionProblem
from attention.variant import by_path, shipped
from attention.verify import emulated
from attention.verify.builds import builds_of
from attention.verify.problems import Case, case_of
from microbench.emulator import MODES, Mode
from microbench.errors import DeviceError
from microbench.machine.arch import by_name

PATHS = (
    "sm70/forward/quad_pair",
    "sm75/forward/register_staged",
    "sm80/forward/software_pipelined",
    "sm80/forward/split_keys",
    "sm90a/forward/split_keys",
    "sm90a/forward/warp_specialised",
    "sm100a/forward/tensor_memory",
)
PARTS = 8
each_kernel = pytest.mark.parametrize("path", PATHS)
# Those for few tiles of rows deal none by lengths, and have some features alone.
OF_EVERY_FEATURE = tuple(path for path in PATHS if by_path(path).features >= SERVED)
each_of_every_feature = pytest.mark.parametrize("path", OF_EVERY_FEATURE)


def test_every_kernel_of_ours_is_executed_here() -> None:
    assert set(PATHS) == {variant.path for variant in shipped() if variant.builds}


@each_kernel
def test_random_problems_are_right(path: str) -> None:
    require_right(emulated.cases_with(by_path(path), most=6))


@each_of_every_feature
def test_sequences_of_very_unlike_lengths_are_right_in_every_mode(path: str) -> None:
    builds = [each for each in builds_of(path, by_path(path).archs[0]) if each.dealt and each.bucket[1] <= 96]
    cases = [case_of(build, number, 1, emulated.SMALL) for number, build in enumerate(builds)]
    assert [case.problem.causal or case.problem.edges.right is not None for case in cases] == [False, True]
    assert all(dealt(case.problem) for case in cases)
    for mode in MODES:
        require_right(cases, mode)


# A build takes ten seconds to compile for the emulator.
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("path", "most"), [(path, 1000 if "sm80" in path else 40) for path in PATHS])
def test_the_builds_of_a_campaign_are_right_in_every_mode(path: str, most: int, part: int) -> None:
    cases = emulated.cases_with(by_path(path), most=most)[part::PARTS]
    for mode in MODES:
        require_right(cases, mode)


def require_right(cases: list[Case], mode: Mode = "lazy") -> None:
    wrong = [f"{row.problem} {row.config}: {row.reason}" for row in emulated.judged(cases, mode) if not row.ok]
    assert not wrong


@each_of_every_feature
def test_a_wrong_feature_is_seen(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher forgets the tensors of features, and slopes are read through null."""
    (case, *_) = emulated.cases_with(by_path(path), named("alibi"))
    monkeypatch.setattr("attention.kernels.launch.ready.place", lambda launch, extras: None)
    with pytest.raises(DeviceError, match="belongs to no buffer"):
        emulated.judged([case])


@pytest.mark.parametrize("path", ["sm80/forward/software_pipelined", "sm90a/forward/warp_specialised"])
def test_a_known_call_computes_what_a_judged_one_does(path: str) -> None:
    """Of new tensors each time, in one frame, which is bound to how features' tensors lie."""
    problem = AttentionProblem(2, 2, 2, 64, 64, 64, dtype="bfloat16", device="cuda", mask="bool", sinks=True)
    variant, arch = by_path(path), by_name(by_path(path).archs[0])
    assert variant.illegal is not None
    config = next(each for each in variant.configs() if not variant.illegal(problem, each, arch))
    plan = Plan(problem, config, variant.load(), "smscope", None)
    operands = Operands(("sinks", "mask"), lambda query, extras: extras, ROWS_OF_HEADS)
    rng, serve = torch.Generator().manual_seed(0), None
    with emulated.emulating():
        for _ in range(3):
            inputs = [torch.randn(2, 64, 2, 64, generator=rng).bfloat16() for _ in range(3)]
            given = [torch.randn(2, generator=rng), torch.rand(2, 1, 64, 64, generator=rng) < 0.5]
            if serve is None:
                ready = launched(plan, *inputs, ROWS_OF_HEADS)
                assert ready is not None
                serve = bringing(ready, operands, inputs[0], inputs[1], given)
            where = addresses(*inputs)
            assert where is not None
            found = serve(*inputs, where, given).transpose(1, 2)
            views = [each.transpose(1, 2) for each in inputs]
            extras = Extras(sinks=given[0], mask=given[1].expand(2, 2, 64, 64))
            assert torch.equal(found, plan.run(*views, problem, config, extras)[0])


@each_kernel
def test_host_memory_is_refused_where_nothing_stands_in_for_a_gpu(path: str) -> None:
    variant, tensor = by_path(path), torch.zeros(1, 1, 64, 64, dtype=torch.bfloat16)
    assert not stand_ins
    problem = AttentionProblem(1, 1, 1, 64, 64, 64, dtype="bfloat16", device="cuda")
    with pytest.raises(LaunchError, match="was given tensors on cpu; move them to the GPU"):
        variant.load()(tensor, tensor, tensor, problem, variant.configs()[0])
