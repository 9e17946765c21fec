"""attention.sdpa in the place of torch's function: under its name, with its broadcasting, biases and contexts."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import FallbackWarning, ProblemError, UnsupportedError, explain, sdpa
from attention.call import Call, Options
from attention.op import dispatch
from tests.tensors import Shape, assert_same_gradients, random

F = torch.nn.functional.scaled_dot_product_attention
CLOSE: dict[str, float] = {"rtol": 0, "atol": 2e-5}

pytestmark = [
    pytest.mark.usefixtures("host_machine"),
    pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning"),
]


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """What the operator is called with, beside tensors."""
    found: list[Options] = []
    whole = dispatch.forward

    def forward(call: Call, plan: Any = None) -> Any:
        found.append(call.options)
        return whole(call, plan)

    monkeypatch.setattr(dispatch, "forward", forward)
    return found


@pytest.fixture
def swapped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    torch.compiler.reset()
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", sdpa)
    yield
    torch.compiler.reset()


FELL_BACK: list[Options] = [(), (None, 0.0, True), (torch.zeros(8, 12),), (torch.ones(8, 12).bool().tril(),)]


@pytest.mark.usefixtures("swapped")
@pytest.mark.parametrize("options", FELL_BACK, ids=["plain", "causal", "float mask", "bool mask"])
@pytest.mark.parametrize("compiled", [False, True])
def test_under_torchs_own_name_a_fallback_ends(options: tuple[Any, ...], compiled: bool) -> None:
    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, *options)

    call = torch.compile(model, fullgraph=True, backend="aot_eager") if compiled else model
    inputs = random((1, 2, 8, 16), (1, 2, 12, 16), (1, 2, 12, 16), grad=True)
    ours, theirs = call(*inputs), F(*inputs, *options)
    torch.testing.assert_close(ours, theirs, **CLOSE)
    assert_same_gradients(ours, theirs, inputs, **CLOSE)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.usefixtures("swapped")
def test_under_torchs_own_name_dropout_and_nested_tensors_reach_torch() -> None:
    q, k, v = random(*[(1, 2, 8, 16)] * 3)
    assert torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=1.0).abs().sum() == 0
    parts = random((3, 2, 16), (5, 2, 16))
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
    out = torch.nn.functional.scaled_dot_product_attention(nested, nested, nested)
    for mine, part in zip(out.unbind(), parts, strict=True):
        each = part.transpose(0, 1)
        torch.testing.assert_close(mine, F(each, each, each), **CLOSE)


@pytest.mark.usefixtures("swapped")
def test_under_torchs_own_name_a_layer_of_torch_calls_ours() -> None:
    layer = torch.nn.MultiheadAttention(32, 2, batch_first=True)
    (x,) = random((2, 8, 32), grad=True)
    layer(x, x, x, need_weights=False)[0].sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()


FEWER: list[tuple[Shape, Shape, Shape, dict[str, Any]]] = [
    ((33, 16), (2, 4, 40, 16), (2, 4, 40, 16), {}),
    ((33, 16), (4, 40, 16), (4, 40, 16), {"is_causal": True}),
    ((4, 33, 16), (2, 4, 40, 16), (2, 4, 40, 16), {}),
    ((4, 33, 16), (3, 2, 4, 40, 16), (2, 1, 40, 16), {}),
    ((4, 33, 16), (4, 40, 16), (2, 4, 40, 24), {}),
    ((4, 33, 16), (3, 2, 40, 16), (3, 2, 40, 16), {"enable_gqa": True}),
    ((2, 4, 33, 16), (40, 16), (4, 40, 16), {}),
]


@pytest.mark.parametrize("only", ["smscope", "torch"])
@pytest.mark.parametrize(("query", "key", "value", "options"), FEWER)
def test_leading_dimensions_broadcast_as_torchs_do(
    query: Shape, key: Shape, value: Shape, options: dict[str, Any], only: str
) -> None:
    inputs = random(query, key, value, grad=True)
    ours, theirs = sdpa(*inputs, **options, only=only), F(*inputs, **options)
    assert ours.shape == theirs.shape
    torch.testing.assert_close(ours, theirs, **CLOSE)
    assert_same_gradients(ours, theirs, inputs, **CLOSE)


@pytest.mark.parametrize("mask", [(33, 40), (2, 33, 40), (1, 40), (3, 1, 1, 40)])
def test_a_mask_broadcasts_beside_a_query_of_fewer_dimensions(mask: Shape) -> None:
    q, k, v, bias = random((33, 16), (3, 2, 40, 16), (3, 2, 40, 16), mask)
    torch.testing.assert_close(sdpa(q, k, v, bias), F(q, k, v, bias), **CLOSE)


def test_a_query_of_fewer_dimensions_on_meta_has_gradients() -> None:
    q, k, v = (torch.empty(s, device="meta", requires_grad=True) for s in [(33, 16), (2, 4, 40, 16), (2, 4, 40, 16)])
    out = sdpa(q, k, v)
    out.sum().backward()
    assert out.shape == (2, 4, 33, 16)
    assert [each.grad is not None and each.grad.shape == each.shape for each in (q, k, v)] == [True] * 3


def biases(queries: int, keys: int) -> list[Any]:
    from torch.nn.attention import bias

    return [bias.causal_lower_right(queries, keys), bias.causal_upper_left(queries, keys)]


@pytest.mark.parametrize("which", [0, 1], ids=["lower right", "upper left"])
@pytest.mark.parametrize("only", ["smscope", None])
@pytest.mark.parametrize("heads", [2, 3])  # a CausalBias has the shape (1 or 2, Sq, Skv), and nothing in it
def test_a_causal_bias_of_torch_is_our_causality(which: int, only: str | None, heads: int, met: list[Options]) -> None:
    bias = biases(9, 20)[which]
    inputs = random((2, heads, 9, 16), (2, heads, 20, 16), (2, heads, 20, 16), grad=True)
    ours, theirs = sdpa(*inputs, bias, only=only), F(*inputs, bias._materialize())
    torch.testing.assert_close(ours, theirs, **CLOSE)
    assert_same_gradients(ours, theirs, inputs, **CLOSE)
    if only == "smscope":
        assert [(given.causal, given.bottom_right) for given in met] == [(True, which == 0)]  # no mask was made


@pytest.mark.parametrize("which", [0, 1], ids=["lower right", "upper left"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_causal_bias_of_torch_compiles(which: int, dynamic: bool) -> None:
    torch.compiler.reset()
    bias = biases(9, 20)[which]
    inputs = random((2, 2, 9, 16), (2, 2, 20, 16), (2, 2, 20, 16), grad=True)
    model = torch.compile(lambda *a: sdpa(*a, bias), fullgraph=True, backend="aot_eager", dynamic=dynamic)
    ours, theirs = model(*inputs), F(*inputs, bias._materialize())
    torch.testing.assert_close(ours, theirs, **CLOSE)
    assert_same_gradients(ours, theirs, inputs, **CLOSE)


@pytest.mark.usefixtures("swapped")
@pytest.mark.parametrize("queries", [9, 128])
def test_under_torchs_own_name_a_causal_bias_is_no_float_mask(queries: int) -> None:
    """Nor is it after a float mask of the same dtype was served: torch's builtin knows a bias by torch's own name."""
    q, k, v = random((1, 2, queries, 64), (1, 2, 140, 64), (1, 2, 140, 64))
    for bias in biases(queries, 140):
        for _ in range(2):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, torch.zeros(queries, 140))
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, bias)
            torch.testing.assert_close(out, F(q, k, v, bias._materialize()), **CLOSE)


def test_a_causal_bias_reaches_torch_as_what_it_says() -> None:
    q, k, v = random((1, 2, 9, 16), (1, 2, 20, 16), (1, 2, 20, 16))
    for bias in biases(9, 20):
        with sdpa_kernel(SDPBackend.MATH):
            torch.testing.assert_close(sdpa(q, k, v, bias), F(q, k, v, bias._materialize()), **CLOSE)


def test_a_causal_bias_of_other_lengths_is_refused() -> None:
    q, k, v = random((1, 2, 9, 16), (1, 2, 20, 16), (1, 2, 20, 16))
    for bias in biases(9, 21):
        for call in (sdpa, explain):
            with pytest.raises(ProblemError, match="causal for 9 queries and 21 keys, and there are 9 and 20"):
                call(q, k, v, bias)
    for bias in biases(9, 20):
        with pytest.raises(ProblemError, match="exclude each other"):
            sdpa(q, k, v, bias, is_causal=True)


def test_explain_reads_a_causal_bias() -> None:
    q, k, v = random((1, 2, 9, 16), (1, 2, 20, 16), (1, 2, 20, 16))
    lower_right, upper_left = (explain(q, k, v, bias).choice.problem for bias in biases(9, 20))
    assert lower_right.causal and lower_right.alignment == "bottom_right" and lower_right.mask == "none"
    assert upper_left.causal and upper_left.alignment == "top_left" and upper_left.mask == "none"


ASKED = [SDPBackend.MATH, [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]]


@pytest.mark.parametrize("asked", ASKED, ids=["one", "two"])
def test_a_backend_of_torch_that_is_asked_for_serves(asked: Any, met: list[Options]) -> None:
    q, k, v = random(*[(1, 2, 64, 16)] * 3)
    with sdpa_kernel(asked), warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)  # nothing is lacking
        assert torch.equal(sdpa(q, k, v, is_causal=True), F(q, k, v, is_causal=True))
        assert torch.equal(sdpa(q, k, v, strict=True), F(q, k, v))
        assert "so attention.sdpa hands it this call" in " ".join(explain(q, k, v).cautions)
        assert met == []
        sdpa(q, k, v, only="smscope")
        assert len(met) == 1
        assert "hands it this call" not in " ".join(explain(q, k, v, only="smscope").cautions)
    assert "hands it this call" not in " ".join(explain(q, k, v).cautions)


def test_a_backend_of_torch_that_is_asked_for_serves_compiled_graphs() -> None:
    torch.compiler.reset()
    targets: list[str] = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        targets.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    def model(q: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return sdpa(q, q, q)

    (q,) = random((1, 2, 8, 16))
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend=backend)(q), F(q, q, q), **CLOSE)
    assert not any("smscope" in target for target in targets)
    assert any("scaled_dot_product_attention" in target for target in targets)


def test_deterministic_algorithms_give_the_same_bits_again() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        inputs = random((2, 4, 33, 16), (2, 2, 40, 16), (2, 2, 40, 16), grad=True)
        for options in ({}, {"only": "smscope"}):
            runs = []
            for _ in range(2):
                out = sdpa(*inputs, enable_gqa=True, **options)  # type: ignore[arg-type]
                runs.append((out, *torch.autograd.grad(out.sum(), inputs)))
            assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))
    finally:
        torch.use_deterministic_algorithms(False)


def test_strict_is_kept_where_torch_was_not_asked_for() -> None:
    q, k, v = random(*[(1, 2, 8, 16)] * 3)
    with pytest.raises(UnsupportedError, match="dropout"):
        sdpa(q, k, v, dropout_p=0.1, strict=True)
