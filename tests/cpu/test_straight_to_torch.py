"""Which CPU calls go to torch's function before they are judged, and that nobody can tell but by the clock."""

import pytest
import torch

from attention import FallbackWarning, ProblemError, sdpa
from attention.choose.calibration import Duel
from attention.frontends import sdpa as frontend
from attention.op import plan
from attention.problem import AttentionProblem

F = torch.nn.functional.scaled_dot_product_attention

pytestmark = pytest.mark.usefixtures("host_machine")


@pytest.fixture
def judged(monkeypatch):
    """How many calls were judged."""
    calls = []
    first_step = frontend.autocast
    monkeypatch.setattr(frontend, "autocast", lambda *given: calls.append(given) or first_step(*given))
    return calls


def tensors(heads=4, queries=16, keys=16, dim=16, dtype=torch.float32):
    return [torch.randn(1, heads, rows, dim, dtype=dtype) for rows in (queries, keys, keys)]


@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"scale": 0.3}, {"enable_gqa": True}, {"is_causal": True, "scale": 0.3}]
)
def test_a_small_call_is_torchs_and_is_not_judged(judged, options):
    q, k, v = tensors()
    assert torch.equal(sdpa(q, k, v, **options), F(q, k, v, **options)) and not judged


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
@pytest.mark.parametrize("options", [{}, {"scale": 0.3}, {"enable_gqa": True}])
def test_a_small_call_with_a_mask_is_torchs_too(judged, options, dtype):
    q, k, v = tensors()
    mask = torch.ones(16, 16).tril().to(dtype)
    assert torch.equal(sdpa(q, k, v, mask, **options), F(q, k, v, mask, **options)) and not judged


def test_a_mask_beside_is_causal_is_refused_whatever_torch_makes_of_it(judged):
    with pytest.raises(ProblemError, match="is_causal"):
        sdpa(*tensors(), torch.ones(16, 16, dtype=torch.bool), is_causal=True)
    assert len(judged) == 1


@pytest.mark.parametrize("options", [{"only": "torch"}, {"only": "smscope"}, {"strict": True}, {"dropout_p": 0.5}])
def test_who_asks_for_more_is_judged_however_small(judged, options):
    with pytest.warns(FallbackWarning) if "dropout_p" in options else torch.no_grad():
        sdpa(*tensors(), **options)
    assert len(judged) == 1


def test_what_torch_refuses_is_judged_and_named(judged):
    q, k, v = tensors()
    with pytest.raises(ProblemError, match="key 8"):
        sdpa(q, k[..., :8], v)
    with pytest.raises(TypeError, match="key is a list"):
        sdpa(q, k.tolist(), v)
    assert len(judged) == 1


@pytest.mark.parametrize("queries", [16, 128])
@pytest.mark.parametrize("enable_gqa", [False, True])
@pytest.mark.parametrize("value", [(1, 4, 15, 64), (1, 2, 32, 64), (1, 8, 8, 64)])
def test_a_value_that_torch_would_read_past_is_refused(queries, enable_gqa, value):
    """Torch's CPU kernel (2.13) takes the number of keys from key, and reads as many rows of value."""
    q, k, v = tensors(queries=queries, dim=64)
    sdpa(q, k, v, enable_gqa=enable_gqa)
    with pytest.raises(ProblemError, match=r"key .* and value .* must have the same"):
        sdpa(q, k, torch.zeros(value), enable_gqa=enable_gqa)


@pytest.mark.parametrize("scale", [-0.25, 0.0])
def test_what_torch_computes_wrong_is_not_left_to_it(scale):
    q, k, v = tensors(queries=8, keys=8)
    scores = (scale * q.double() @ k.double().mT).masked_fill(~torch.ones(8, 8, dtype=torch.bool).tril(), -torch.inf)
    expected = (scores.softmax(-1) @ v.double()).float()
    torch.testing.assert_close(sdpa(q, k, v, is_causal=True, scale=scale), expected, rtol=0, atol=5e-6)


def test_what_is_empty_has_a_shape_and_zeros():
    q, k, v = tensors()
    assert sdpa(q[:, :, :0], k, v).shape == (1, 4, 0, 16)
    assert torch.equal(sdpa(q, k[:, :, :0], v[:, :, :0]), torch.zeros_like(q))


def test_a_large_call_is_judged_once_for_all_like_it(judged):
    q, k, v = tensors(heads=8, queries=128, keys=128, dim=64)
    for _ in range(3):
        assert torch.equal(sdpa(q, k, v), F(q, k, v))
    assert len(judged) == 1
    sdpa(q, k, v, is_causal=True)
    sdpa(q, k[:, :, :100], v[:, :, :100])
    assert len(judged) == 3


@pytest.mark.parametrize("masked", [False, True])
def test_a_growing_cache_is_judged_once_and_warned_of_once(judged, masked):
    q, k, v = tensors(heads=64, queries=1, keys=40, dim=128)
    with pytest.warns(FallbackWarning, match="bool mask") if masked else torch.no_grad() as warned:
        for keys in range(20, 40):
            mask = torch.ones(1, 1, 1, keys, dtype=torch.bool) if masked else None
            out = sdpa(q, k[:, :, :keys], v[:, :, :keys], mask)
            assert torch.equal(out, F(q, k[:, :, :keys], v[:, :, :keys], mask))
    assert len(judged) == 1 and (not masked or len(warned) == 1)


def test_kinds_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(frontend, "MOST_KEPT", 4)
    for rows in range(40, 50):
        sdpa(*tensors(queries=rows, keys=128, dim=128))
        sdpa(*tensors(queries=100, keys=90 + rows, dim=128))
    assert 0 < len(frontend._torchs_kinds) <= 4 and all(0 < len(each) <= 4 for each in frontend._torchs_kinds.values())


def test_on_a_cpu_where_ours_won_no_duel_no_plain_call_is_judged(judged, monkeypatch):
    """The rule by which the chooser picks ours gives it nothing there, whatever is asked."""
    lost = Duel("host/forward/tiled_online_softmax float32", AttentionProblem(1, 8, 8, 256, 256, 64), 0.9)
    monkeypatch.setattr(plan.learned, "duels_of_machine", lambda _profile: (lost,))
    q, k, v = tensors(heads=8, queries=128, keys=128, dim=64)
    for options in ({}, {"is_causal": True}, {"enable_gqa": True}, {"is_causal": True, "enable_gqa": True}):
        assert torch.equal(sdpa(q, k, v, **options), F(q, k, v, **options)) and not judged
    with pytest.warns(FallbackWarning, match="bool mask"):
        sdpa(q, k, v, torch.ones(128, 128, dtype=torch.bool))
    assert len(judged) == 1


@pytest.mark.parametrize("leads", [(), (0.7, 1.5)])
def test_where_ours_won_or_nobody_fought_a_call_is_judged(judged, monkeypatch, leads):
    fought = tuple(Duel("host", AttentionProblem(1, 8, 8, 256, 256, 64), lead) for lead in leads)
    monkeypatch.setattr(plan.learned, "duels_of_machine", lambda _profile: fought)
    sdpa(*tensors(heads=8, queries=128, keys=128, dim=64))
    assert len(judged) == 1


def test_torchs_function_may_be_replaced_by_ours(monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", sdpa)
    for queries in (16, 128):
        q, k, v = tensors(queries=queries, keys=32, dim=64)
        torch.nn.functional.scaled_dot_product_attention(q, k, v)


def test_a_compiled_graph_of_a_small_call_holds_the_operator():
    met = []

    def backend(graph, _):
        met.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    torch.compile(lambda *given: sdpa(*given), backend=backend, fullgraph=True)(*tensors())
    assert any("attention_forward" in name for name in met)
    met.clear()
    torch.compile(sdpa, backend=backend, fullgraph=True)(*tensors())
    assert any("attention_forward" in name for name in met)


def test_a_warning_points_to_the_line_that_called():
    q, k, v = tensors(heads=8, queries=128, keys=128, dim=64)
    with pytest.warns(FallbackWarning, match="bool mask") as warned:
        sdpa(q, k, v, torch.ones(128, 128, dtype=torch.bool))
    assert [each.filename for each in warned] == [__file__]
