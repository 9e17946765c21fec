"""attention's functions on CUDA tensors: every kernel against the oracle, and torch's own unaltered where it serves."""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch.nn.attention import SDPBackend, sdpa_kernel

import attention.op.operators  # noqa: F401  its operators are called by name
from attention import AttentionProblem, FallbackWarning, UnsupportedError, explain, sdpa
from attention.choose import machine
from attention.kernels.common.layout import empty_out
from attention.op import plan
from attention.oracle import reference
from microbench import paths
from microbench.machine import nvml
from microbench.results.profile import Profile, available
from tests.cpu.attention_features import cases
from tests.tensors import random

# Warnings of torch itself are torch's affair; ours are asserted where they are promised.
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning"),
]

DEVICE = "cuda"
F = torch.nn.functional.scaled_dot_product_attention
on_gpu = partial(random, device=DEVICE)
# Torch's fused backward adds with atomics, in another order each time.
GRADIENTS = {
    torch.float32: {"rtol": 1e-4, "atol": 1e-5},
    torch.float16: {"rtol": 1e-2, "atol": 1e-2},
    torch.bfloat16: {"rtol": 5e-2, "atol": 5e-2},
}


@pytest.fixture(autouse=True)
def _every_reason_is_new(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(plan, "_announced", set())
    machine.machine_profile.cache_clear()
    yield
    machine.machine_profile.cache_clear()


def same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Bit for bit: it is the same kernel."""
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert ours.stride() == theirs.stride()


def by_each_kernel(*tensors: torch.Tensor, **options: Any) -> Iterator[torch.Tensor]:
    """What torch's function gives as it is, and by each of its kernels that serves."""
    yield F(*tensors, **options)
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
        with sdpa_kernel(backend), suppress(RuntimeError):
            yield F(*tensors, **options)


SHAPES = [
    ((2, 4, 65, 64), (2, 4, 130, 64), {}),
    ((2, 4, 65, 64), (2, 4, 65, 64), {"is_causal": True}),
    ((2, 8, 65, 64), (2, 2, 130, 64), {"enable_gqa": True, "scale": 0.3}),
    ((4, 65, 64), (4, 130, 64), {"scale": -0.25}),
    ((1, 2, 16, 300), (1, 2, 16, 300), {}),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("query", "key", "options"), SHAPES)
def test_the_result_is_that_of_a_kernel_of_torchs(query, key, options, dtype):
    """Bit for bit. A shape that is new goes past cuDNN, whose plan torch's function would wait for."""
    q, k, v = on_gpu(query, key, key, dtype=dtype)
    ours = sdpa(q, k, v, **options, only="torch")
    assert any(
        torch.equal(ours, theirs) and ours.stride() == theirs.stride() for theirs in by_each_kernel(q, k, v, **options)
    )


@pytest.mark.parametrize("only", [None, "smscope"])
@pytest.mark.parametrize("heads", [(4, 4, 1), (4, 1, 4), (4, 1, 1)])
def test_heads_that_torch_would_broadcast_are_not_read_past_their_end(heads, only):
    q, k, v = on_gpu(*((2, each, 256, 64) for each in heads), dtype=torch.bfloat16)
    spread = (each.expand(2, 4, 256, 64).float() for each in (q, k, v))
    torch.testing.assert_close(sdpa(q, k, v, only=only).float(), F(*spread), rtol=0, atol=2e-2)


def test_a_mask_goes_to_torch_as_well():
    q, k, v = on_gpu(*[(2, 4, 64, 64)] * 3, dtype=torch.float16)
    mask = torch.ones(64, 64, dtype=torch.bool, device=DEVICE).tril(3)
    same(sdpa(q, k, v, mask, only="torch"), F(q, k, v, mask))


def test_dropout_draws_the_numbers_that_torch_draws():
    q, k, v = on_gpu(*[(2, 4, 64, 64)] * 3, dtype=torch.float16)
    torch.manual_seed(3)
    ours = sdpa(q, k, v, dropout_p=0.5)
    torch.manual_seed(3)
    same(ours, F(q, k, v, dropout_p=0.5))


def test_autocast_casts_as_torch_does():
    q, k, v = on_gpu(*[(2, 4, 64, 64)] * 3)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        ours, theirs = sdpa(q, k, v, only="torch"), F(q, k, v)
    assert ours.dtype == theirs.dtype == torch.bfloat16
    same(ours, theirs)


def test_one_warning_per_distinct_reason():
    q, k, v = on_gpu(*[(1, 2, 32, 64)] * 3, dtype=torch.float16)
    mask = torch.ones(32, 32, dtype=torch.bool, device=DEVICE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            sdpa(q.float(), k.float(), v.float(), is_causal=True)
            sdpa(q, k, v, attn_mask=mask.half())
            sdpa(q, k, v, dropout_p=0.1)
    said = [str(warning.message) for warning in caught if warning.category is FallbackWarning]
    assert len(said) == len(set(said)) and sum("dropout" in line for line in said) == 1
    assert all("torch serves" in line for line in said)


@pytest.mark.parametrize("options", [{"strict": True}, {"only": "smscope"}])
def test_who_wants_no_fallback_gets_an_exception(options):
    q, k, v = on_gpu(*[(1, 2, 32, 64)] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        with pytest.raises(UnsupportedError, match=r"float32|no tuned kernel"):
            sdpa(q, k, v, **options)


@pytest.mark.parametrize("dtype", list(GRADIENTS))
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_torchs_own(dtype, causal):
    inputs = on_gpu(*[(2, 4, 96, 64)] * 3, dtype=dtype, grad=True)
    (seed,) = on_gpu((2, 4, 96, 64), dtype=dtype)
    calls = (partial(sdpa, only="torch"), F)
    ours, theirs = (torch.autograd.grad(function(*inputs, is_causal=causal), inputs, seed) for function in calls)
    torch.testing.assert_close(ours, theirs, **GRADIENTS[dtype])


@pytest.mark.parametrize("only", ["torch", None])
def test_work_goes_to_the_current_stream_forward_and_backward(only):
    """The inputs arrive late on a stream of their own: on any other stream the call would meet zeros."""
    sources = on_gpu(*[(2, 4, 128, 64)] * 3, dtype=torch.float16)
    expected_inputs = [source.clone().requires_grad_() for source in sources]
    expected = F(*expected_inputs)
    wanted = torch.autograd.grad(expected.float().sum(), expected_inputs)
    inputs = [torch.zeros_like(source, requires_grad=True) for source in sources]
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)  # clocks, about a tenth of a second
        with torch.no_grad():
            for late, source in zip(inputs, sources, strict=True):
                late.copy_(source)
        out = sdpa(*inputs, only=only)
        grads = torch.autograd.grad(out.float().sum(), inputs)
    side.synchronize()
    torch.testing.assert_close((out, *grads), (expected, *wanted), **GRADIENTS[torch.float16])


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_graph_has_no_break_and_gives_the_same(dynamic):
    torch.compiler.reset()

    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return sdpa(2 * q, k, v, is_causal=True) + 1

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for rows in (64, 96):
        inputs = on_gpu(*[(1, 4, rows, 64)] * 3, dtype=torch.float16, grad=True)
        theirs = F(2 * inputs[0], *inputs[1:], is_causal=True) + 1
        ours = compiled(*inputs)
        tolerance = GRADIENTS[torch.float16]
        gradients = (torch.autograd.grad(out.float().sum(), inputs) for out in (ours, theirs))
        torch.testing.assert_close(ours, theirs, **tolerance)
        torch.testing.assert_close(*gradients, **tolerance)


@pytest.mark.parametrize("only", ["torch_flash", "torch_cudnn", "torch_efficient", "torch_math"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("query", "key"),
    [((2, 4, 65, 64), (2, 2, 130, 64)), ((1, 4, 130, 40), (1, 4, 65, 40)), ((2, 4, 64, 128), (2, 4, 64, 128))],
)
def test_torchs_kernels_give_out_and_lse_through_the_operator(query, key, causal, only):
    q, k, v = on_gpu(query, key, key, dtype=torch.float16)
    out, lse = torch.ops.smscope.attention_forward(q, k, v, causal=causal, only=only)
    oracle, oracle_lse = reference.attention(*(t.double().cpu().numpy() for t in (q, k, v)), causal=causal)
    assert out.stride() == empty_out(q, v.shape[-1]).stride()
    np.testing.assert_allclose(out.double().cpu().numpy(), oracle, rtol=0, atol=4e-3)
    np.testing.assert_allclose(lse.double().cpu().numpy(), oracle_lse, rtol=0, atol=2e-3)


@pytest.mark.parametrize("only", ["torch_efficient", "torch_math"])
def test_masks_through_the_operator_agree_with_the_oracle(only):
    q, k, v, noise = on_gpu((2, 4, 65, 64), (2, 2, 77, 64), (2, 2, 77, 64), (1, 4, 65, 77), dtype=torch.float16)
    seen = noise > 0
    seen[0, 1, 3] = False
    for mask in (seen, torch.zeros_like(noise).masked_fill(~seen, -torch.inf)):
        out, lse = torch.ops.smscope.attention_forward(q, k, v, mask=mask, only=only)
        arrays = (t.double().cpu().numpy() for t in (q, k, v))
        oracle, oracle_lse = reference.attention(*arrays, mask=seen.cpu().numpy())
        np.testing.assert_allclose(out.double().cpu().numpy(), oracle, rtol=0, atol=4e-3)
        np.testing.assert_allclose(lse.double().cpu().numpy(), oracle_lse, rtol=0, atol=2e-3)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(case=cases(dtypes=("float16", "bfloat16", "float32"), longest=300, widest=256))
def test_every_feature_alone_and_with_others_agrees_with_the_oracle(case):
    tensors = case.tensors(DEVICE)
    case.hold(*case.call(*tensors), tensors)


# explain --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def profile(gpu: nvml.Gpu) -> Profile:
    """The committed profile of this GPU."""
    if gpu.slug not in available():
        pytest.skip(f"no profile of {gpu.slug} is committed yet; `make bench` measures it")
    return Profile.load(gpu.slug)


def test_explain_names_the_profile_of_the_gpu_that_the_tensors_are_on(profile):
    q, k, v = on_gpu(*[(1, 8, 256, 128)] * 3, dtype=torch.bfloat16)
    found = explain(q, k, v, is_causal=True)
    choice = found.choice
    assert (choice.gpu, choice.arch, choice.problem.device) == (profile.gpu, profile.arch, "cuda")
    assert found.headline().startswith(f"B=1 Hq=8 Hkv=8 Sq=256 Skv=256 D=128 bfloat16 causal on {profile.gpu}: ")
    assert found.cautions == () or all("lower bound" in caution for caution in found.cautions)
    assert all(profile[used.name].value == used.value for used in found.constants)
    assert choice.pick.variant in str(found)


def test_explain_chooses_for_tensors_as_for_the_problem_they_pose(profile):
    q, k, v = on_gpu((2, 8, 64, 64), (2, 2, 192, 64), (2, 2, 192, 64), dtype=torch.float16)
    problem = AttentionProblem(2, 8, 2, 64, 192, 64, dtype="float16", device="cuda")
    assert explain(q, k, v, enable_gqa=True).choice.pick == explain(problem, gpu=profile.gpu).choice.pick


def test_a_gpu_that_nobody_measured_is_served_and_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr(machine, "advising", list)
    q, k, v = on_gpu(*[(1, 2, 32, 64)] * 3)
    (caution,) = explain(q, k, v).cautions
    assert paths.typed("bench") in caution and torch.cuda.get_device_name(DEVICE) in caution
