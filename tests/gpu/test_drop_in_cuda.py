"""attention.sdpa in the place of torch's function on a GPU: masks under vmap, biases, contexts, counts, determinism."""

from functools import partial

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from attention import explain, sdpa
from attention.torch_private import torch_sdpa
from tests.tensors import assert_same_gradients, random

# Warnings of torch itself are torch's affair.
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning"),
]

CLOSE: dict[str, float] = {"rtol": 2e-2, "atol": 2e-2}
on_gpu = partial(random, dtype=torch.bfloat16, device="cuda")


@pytest.mark.parametrize("kind", ["bool", "float"])
@pytest.mark.parametrize("mapped", [False, True])
def test_a_mask_under_vmap(kind, mapped):
    """Torch's own efficient kernel crashes here: pytorch#161310."""
    q, k, v = on_gpu((3, 2, 4, 65, 64), (3, 2, 4, 130, 64), (3, 2, 4, 130, 64), grad=True)
    mask = on_gpu((3, 65, 130) if mapped else (65, 130))[0]
    mask = mask > 0 if kind == "bool" else mask
    dims = (0, 0, 0, 0 if mapped else None)
    expected = torch.stack([torch_sdpa(q[i], k[i], v[i], mask[i] if mapped else mask) for i in range(3)])
    found = torch.vmap(sdpa, in_dims=dims)(q, k, v, mask)
    torch.testing.assert_close(found, expected, **CLOSE)
    assert_same_gradients(found, expected, (q, k, v), rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("bias", [causal_lower_right, causal_upper_left])
@pytest.mark.parametrize("heads", [2, 5])
def test_a_causal_bias_is_served_by_a_tuned_kernel(bias, heads):
    q, k, v = on_gpu((2, heads, 1000, 128), (2, heads, 3000, 128), (2, heads, 3000, 128))
    given = bias(1000, 3000)
    if torch.cuda.get_device_capability() == (9, 0):
        assert explain(q, k, v, given, only="smscope").choice.pick.owner == "smscope"
    expected = torch_sdpa(q, k, v, given._materialize(q.device))
    torch.testing.assert_close(sdpa(q, k, v, given), expected, **CLOSE)
    torch.testing.assert_close(sdpa(q, k, v, given, only="smscope"), expected, **CLOSE)


@pytest.mark.parametrize("backend", ["MATH", "EFFICIENT_ATTENTION", "FLASH_ATTENTION", "CUDNN_ATTENTION"])
def test_a_backend_of_torch_that_is_asked_for_serves(backend):
    q, k, v = on_gpu(*[(2, 4, 256, 64)] * 3)
    with sdpa_kernel(getattr(SDPBackend, backend)):
        assert torch.equal(sdpa(q, k, v, is_causal=True), torch_sdpa(q, k, v, is_causal=True))
        assert backend in " ".join(explain(q, k, v).cautions)


@pytest.mark.parametrize("options", [{}, {"only": "smscope"}, {"only": "torch"}])
def test_flops_are_counted_whoever_serves(options):
    q, k, v = on_gpu(*[(2, 4, 256, 64)] * 3)
    with FlopCounterMode(display=False) as counter:
        sdpa(q, k, v, **options)
    assert counter.get_total_flops() == sdpa_flop_count(q.shape, k.shape, v.shape)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"only": "smscope"}])
@pytest.mark.parametrize("grouped", [False, True])
def test_deterministic_algorithms_give_the_same_bits_again(options, grouped, monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    q, k, v = on_gpu((2, 8, 1000, 128), *[(2, 2 if grouped else 8, 1000, 128)] * 2, grad=True)
    torch.use_deterministic_algorithms(True)
    try:
        runs = []
        for _ in range(5):
            out = sdpa(q, k, v, enable_gqa=grouped, **options)
            runs.append((out, *torch.autograd.grad(out.float().square().sum(), (q, k, v))))
    finally:
        torch.use_deterministic_algorithms(False)
    for run in runs[1:]:
        assert all(torch.equal(one, other) for one, other in zip(runs[0], run, strict=True))


def test_a_query_of_fewer_dimensions():
    q, k, v = on_gpu((4, 65, 64), (2, 4, 130, 64), (2, 4, 130, 64))
    torch.testing.assert_close(sdpa(q, k, v, only="smscope"), torch_sdpa(q, k, v), **CLOSE)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_nested_tensors_are_torchs_while_calls_are_kept(layout):
    """Strides of jagged ones are symbols, of which torch 2.11 knows no remainder."""
    kept = on_gpu((2, 4, 64, 64), (2, 4, 64, 64), (2, 4, 64, 64))
    expected = [sdpa(*kept) for _ in range(3)][-1]
    parts = [on_gpu((length, 4, 64))[0] for length in (5, 9)]
    nested = [torch.nested.nested_tensor(parts, layout=layout).transpose(1, 2) for _ in range(3)]
    for each, alone in zip(sdpa(*nested).unbind(), parts, strict=True):
        lone = alone.transpose(0, 1)[None]
        torch.testing.assert_close(each[None], torch_sdpa(lone, lone, lone), **CLOSE)
    torch.testing.assert_close(sdpa(*kept), expected, rtol=0, atol=0)
