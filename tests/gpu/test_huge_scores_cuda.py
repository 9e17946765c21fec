"""Huge scores on the GPU, by the public function and each kernel of ours: no NaN where float32 holds a score.

The emulator's own tests are tests/emulated/test_huge_scores.py.
"""

import pytest
import torch

import attention
from attention.errors import UnsupportedError

# Warnings of torch itself are torch's affair.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

KERNELS = ("software_pipelined", "warp_specialised")


@pytest.mark.parametrize("only", KERNELS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(1, 64), (1, 1), (1, 4096), (300, 1000)])
@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize(("dtype", "value"), [(torch.bfloat16, 133120.0), (torch.bfloat16, 1e9), (torch.float16, 6e4)])
def test_equal_scores_give_the_mean_of_v(only, causal, queries, keys, head_dim, dtype, value):
    query, key = (torch.full((1, 2, rows, head_dim), value, dtype=dtype, device="cuda") for rows in (queries, keys))
    v = torch.full_like(key, 133120.0 if dtype == torch.bfloat16 else 3.0)
    for sign in (1, -1):
        try:
            out = attention.sdpa(sign * query, key, v, is_causal=causal, only=only)
        except UnsupportedError as error:
            pytest.skip(str(error))
        torch.testing.assert_close(out, v[:, :, :1].expand_as(out), rtol=0.01, atol=0)


@pytest.mark.parametrize("only", KERNELS)
def test_one_far_row_leaves_its_neighbours_as_they_were(only):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 4, 700, 128, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    try:
        before = attention.sdpa(query, key, value, only=only)
    except UnsupportedError as error:
        pytest.skip(str(error))
    query[0, 1, 300] *= 2.0**30
    after = attention.sdpa(query, key, value, only=only)
    largest = (query[0, 1, 300].float() @ key[0, 1].float().T).argmax()
    torch.testing.assert_close(after[0, 1, 300], value[0, 1, largest], rtol=0.02, atol=0.02)
    untouched = torch.ones(2, 4, 700, dtype=torch.bool, device="cuda")
    untouched[0, 1, 300] = False
    torch.testing.assert_close(after[untouched], before[untouched], rtol=0.02, atol=0.02)
