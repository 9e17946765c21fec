import math
import os
import platform

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention.kernels.common.layout import empty_lse, empty_out
from attention.kernels.host.forward.tiled_online_softmax.vector import exp2_polynomial
from attention.oracle import reference, rounding
from attention.oracle.rounding import Rounded
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from tests.elsewhere import on_threads, printed

OURS = by_path("host/forward/tiled_online_softmax")
VARIANTS = [OURS, by_path("host/forward/torch_sdpa"), by_path("host/forward/torch_math")]
DTYPES = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16}
SMALL = Config((("block_q", 32), ("block_kv", 32)))


def config(block_q, block_kv):
    return Config((("block_q", block_q), ("block_kv", block_kv)))


def laid_out(shape, layout, dtype, generator):
    """A random tensor (B, H, S, D) in one of the memory layouts that callers have; what it does not own is NaN."""
    batch, heads, rows, dim = shape
    if layout == "packed":
        tensor = torch.empty(shape)
    elif layout == "rows before heads":
        tensor = torch.empty(batch, rows, heads, dim).transpose(1, 2)
    elif layout == "slice of qkv":
        tensor = torch.full((batch, rows, 3, heads, dim), math.nan)[:, :, 1].transpose(1, 2)
    elif layout == "padded":
        tensor = torch.full((batch, heads, rows + 3, dim + 5), math.nan)[:, :, 1:-2, 2:-3]
    else:
        tensor = torch.empty(batch, heads, dim, rows).transpose(2, 3)
    # .to() keeps padding away, so the cast comes before the values
    cast = torch.empty_strided(tensor.size(), tensor.stride(), dtype=dtype)
    cast.copy_(torch.randn(shape, generator=generator))
    return cast


def rounding_bound(q, k, v, problem, mask):
    """The largest error of a float32 out that rounding can explain."""
    group = q.shape[1] // k.shape[1]
    exact = (Rounded.exact(t.double().numpy()) for t in (q, *(t.repeat_interleave(group, 1) for t in (k, v))))
    seen = np.tri(q.shape[2], k.shape[2], dtype=bool) if mask is None and problem.causal else mask
    return rounding.attention(*exact, scale=problem.softmax_scale, seen=seen)[1].error.max(initial=0.0)


def checked(variant, q, k, v, problem, settings_):
    """Run a variant and hold out and lse against the oracle by the project's rule."""
    out, lse = variant.load()(q, k, v, problem, settings_)
    assert out.dtype == q.dtype and out.stride() == empty_out(q, v.shape[-1]).stride()
    assert lse.dtype == empty_lse(q).dtype and lse.stride() == empty_lse(q).stride()
    oracle, oracle_lse = reference.attention(
        *(t.double().numpy() for t in (q, k, v)),
        causal=problem.causal,
        alignment=problem.alignment,
        window=problem.window,
        scale=problem.softmax_scale,
    )
    plain = {"is_causal": problem.causal}
    if problem.features:
        band = problem.band()
        ahead = torch.arange(k.shape[2]) - torch.arange(q.shape[2])[:, None]
        right = torch.ones_like(ahead, dtype=torch.bool) if band.right is None else ahead <= band.right
        plain = {"attn_mask": right if band.left is None else right & (ahead >= band.left)}
    low = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, scale=problem.softmax_scale, enable_gqa=True, **plain
    )
    bound = rounding_bound(q, k, v, problem, plain.get("attn_mask")) if problem.dtype == "float32" else 0.0
    found = reference.compare(out.double().numpy(), oracle, low.double().numpy(), problem.dtype, bound)
    if problem.dtype == "float64":  # the oracle is no better than the result: allow 60 roundings of a score
        largest = max(1.0, np.abs(oracle_lse).max())
        assert found.positions_agree and found.error < 60 * np.finfo(np.float64).eps * largest
    else:
        assert found.ok, str(found)
    eps = np.finfo(np.float64 if problem.dtype == "float64" else np.float32).eps
    if variant.owner == "torch" and q.element_size() == 2:
        eps = 2.0**-17  # torch's exp for 16-bit inputs is approximate
    np.testing.assert_allclose(lse.double().numpy(), oracle_lse, rtol=16 * eps, atol=32 * eps)
    return out, lse


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**31),
    heads=st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 3)),
    lengths=st.tuples(st.integers(1, 150), st.integers(1, 150)),
    dims=st.tuples(st.integers(1, 256), st.none() | st.integers(1, 256)),
    blocks=st.tuples(st.sampled_from([32, 64, 128]), st.sampled_from([32, 64, 256])),
    layouts=st.tuples(*[st.sampled_from(["packed", "rows before heads", "slice of qkv", "padded", "columns"])] * 3),
    dtype=st.sampled_from(sorted(DTYPES)),
    causal=st.booleans(),
    alignment=st.sampled_from(["top_left", "bottom_right"]),
    window=st.just((-1, -1)) | st.tuples(st.integers(-1, 160), st.integers(-1, 160)),
)
def test_random_problems_agree_with_the_oracle(seed, heads, lengths, dims, blocks, layouts, dtype, **band):
    (batch, kv_heads, group), (dim, dim_v), (seq_q, seq_kv) = heads, dims, lengths
    sizes = (batch, kv_heads * group, kv_heads, seq_q, seq_kv, dim, dim if dim_v is None else dim_v)
    problem, generator = AttentionProblem(*sizes, dtype=dtype, **band), torch.Generator().manual_seed(seed)
    shapes = ((problem.heads_q, seq_q, dim), (kv_heads, seq_kv, dim), (kv_heads, seq_kv, problem.head_dim_v))
    q, k, v = (
        laid_out((batch, *shape), layout, DTYPES[dtype], generator)
        for shape, layout in zip(shapes, layouts, strict=True)
    )
    checked(OURS, q, k, v, problem, config(*blocks))


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layout", ["packed", "rows before heads", "columns"])
def test_every_host_variant_keeps_the_same_contract(variant, causal, dtype, layout):
    generator = torch.Generator().manual_seed(3)
    problem = AttentionProblem(2, 4, 2, 70, 90, 48, dtype=dtype, causal=causal, scale=0.3)
    shapes = ((2, 4, 70, 48), (2, 2, 90, 48), (2, 2, 90, 48))
    q, k, v = (laid_out(shape, layout, DTYPES[dtype], generator) for shape in shapes)
    checked(variant, q, k, v, problem, variant.configs()[0])


@pytest.mark.parametrize(("seq_q", "seq_kv"), [(1, 1), (64, 128), (239, 1), (799, 3), (1023, 1024), (1024, 1023)])
@pytest.mark.parametrize("causal", [False, True])
def test_the_shapes_that_flash_attention_tests(seq_q, seq_kv, causal):
    generator = torch.Generator().manual_seed(5)
    q = torch.randn(1, 2, seq_q, 40, generator=generator)
    k, v = torch.randn(2, 1, 1, seq_kv, 40, generator=generator)
    problem = AttentionProblem(1, 2, 1, seq_q, seq_kv, 40, causal=causal)
    checked(OURS, q, k, v, problem, config(64, 128))


def test_long_sums_stay_within_the_rule():
    generator = torch.Generator().manual_seed(7)
    q, k, v = (torch.randn(1, 1, rows, 64, generator=generator) for rows in (64, 16384, 16384))
    checked(OURS, q, k, v, AttentionProblem(1, 1, 1, 64, 16384, 64), config(64, 64))


@pytest.mark.parametrize("window", [(left, -1) for left in range(0, 75, 2)] + [(1, right) for right in range(0, 75, 7)])
def test_every_edge_of_a_window_against_every_edge_of_a_tile(window):
    q, k, v = torch.randn(3, 1, 1, 100, 8, generator=torch.Generator().manual_seed(6))
    for alignment, keys in (("top_left", 100), ("bottom_right", 69), ("bottom_right", 98)):
        problem = AttentionProblem(1, 1, 1, 100, keys, 8, alignment=alignment, window=window)
        checked(OURS, q, k[:, :, :keys], v[:, :, :keys], problem, config(128, 32))


@pytest.mark.parametrize("size", [30.0, 300.0])
def test_scores_far_apart_neither_overflow_nor_lose_the_largest(size):
    generator = torch.Generator().manual_seed(9)
    q, k, v = (torch.randn(1, 2, 65, 32, generator=generator) for _ in range(3))
    checked(OURS, q * size, k, v, AttentionProblem(1, 2, 2, 65, 65, 32), SMALL)


def test_a_nan_reaches_exactly_the_rows_that_see_it():
    q, k, v = torch.randn(3, 1, 1, 70, 16, generator=torch.Generator().manual_seed(1))
    k[0, 0, 40, 3] = math.nan
    problem = AttentionProblem(1, 1, 1, 70, 70, 16, causal=True)
    out, lse = OURS.load()(q, k, v, problem, SMALL)
    bad = torch.isnan(out).all(-1)[0, 0]
    assert bad[40:].all() and not torch.isnan(out[0, 0, :40]).any() and torch.equal(torch.isnan(lse)[0, 0], bad)


def test_a_key_that_nobody_may_see_yet_is_not_read():
    q, k, v = torch.randn(3, 1, 1, 64, 16, generator=torch.Generator().manual_seed(1))
    problem = AttentionProblem(1, 1, 1, 32, 64, 16, causal=True)
    clean = OURS.load()(q[:, :, :32], k, v, problem, SMALL)
    k[:, :, 32:], v[:, :, 32:] = math.nan, math.nan
    poisoned = OURS.load()(q[:, :, :32], k, v, problem, SMALL)
    assert all(torch.equal(one, other) for one, other in zip(clean, poisoned, strict=True))


def test_the_number_of_threads_and_the_tile_rows_change_no_bit():
    q, k, v = torch.randn(3, 2, 3, 300, 24, generator=torch.Generator().manual_seed(2))
    problem = AttentionProblem(2, 3, 3, 300, 300, 24, causal=True)
    before = torch.get_num_threads()
    try:
        results = []
        for threads, block_q in ((1, 32), (2, 32), (3, 64), (2, 128)):
            torch.set_num_threads(threads)
            results.append(OURS.load()(q, k, v, problem, config(block_q, 64)))
    finally:
        torch.set_num_threads(before)
    for out, lse in results[1:]:
        assert torch.equal(out, results[0][0]) and torch.equal(lse, results[0][1])


def test_two_threads_may_call_at_once():
    q, k, v = torch.randn(3, 1, 4, 200, 32, generator=torch.Generator().manual_seed(4))
    problem = AttentionProblem(1, 4, 4, 200, 200, 32)
    expected, _ = OURS.load()(q, k, v, problem, SMALL)
    found = on_threads(2, lambda: [OURS.load()(q, k, v, problem, SMALL)[0] for _ in range(20)])
    assert all(torch.equal(result, expected) for results in found for result in results)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_gets_threads_of_its_own():
    q, k, v = torch.randn(3, 1, 4, 200, 32, generator=torch.Generator().manual_seed(4))
    problem = AttentionProblem(1, 4, 4, 200, 200, 32)
    expected, _ = OURS.load()(q, k, v, problem, SMALL)
    child = os.fork()
    if child == 0:
        same = torch.equal(OURS.load()(q, k, v, problem, SMALL)[0], expected)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names instruction sets of x86")
@pytest.mark.parametrize(("features", "vector_bytes"), [("+sse4.1", 16), ("+avx,+avx2,+fma", 32)])
def test_narrower_vectors_give_the_same(features, vector_bytes):
    script = (
        "import torch\n"
        "from attention.kernels.host.forward.tiled_online_softmax.registers import VECTOR_BYTES\n"
        "from tests.cpu.test_host_forward import OURS, SMALL, checked\n"
        "from attention.problem import AttentionProblem\n"
        f"assert VECTOR_BYTES == {vector_bytes}\n"
        "q, k, v = torch.randn(3, 1, 2, 75, 43, generator=torch.Generator().manual_seed(1))\n"
        "checked(OURS, q, k, v, AttentionProblem(1, 2, 2, 75, 75, 43, causal=True), SMALL)\n"
    )
    printed(script, NUMBA_CPU_FEATURES=features, NUMBA_CPU_NAME="x86-64")


def test_a_maximum_that_did_not_move_scales_older_sums_by_exactly_one():
    assert exp2_polynomial(7)[0] == 1.0


@pytest.mark.parametrize(("degree", "half_unit"), [(7, 2.0**-24), (13, 2.0**-53)])
def test_the_exp2_polynomial_is_closer_than_a_rounding(degree, half_unit):
    f = np.linspace(-0.5, 0.5, 4001).astype(np.longdouble)
    value = sum(np.longdouble(c) * f**power for power, c in enumerate(exp2_polynomial(degree)))
    assert np.abs(value / np.exp2(f) - 1).max() < 0.5 * half_unit
