"""What traces, transforms, counts or observes calls of attention: each meets the call, and gets what torch's gives."""

import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.profiler import ExecutionTraceObserver
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from attention import UnsupportedError, flash_attn_func, flash_attn_varlen_func, sdpa
from attention.op import dispatch
from tests.elsewhere import printed
from tests.tensors import assert_same_gradients, random

F = torch.nn.functional.scaled_dot_product_attention
CLOSE: dict[str, float] = {"rtol": 0, "atol": 2e-5}

pytestmark = [
    pytest.mark.usefixtures("host_machine"),
    pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning"),
]


class Block(torch.nn.Module):
    """A model's use of attention."""

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return sdpa(2 * q, k, k, is_causal=True) + 1


def test_symbolic_trace_keeps_the_call_as_one_node():
    traced = torch.fx.symbolic_trace(Block())
    assert [node.target for node in traced.graph.nodes if node.op == "call_function"].count(sdpa) == 1
    q, k = random((1, 2, 8, 16), (1, 2, 12, 16))
    torch.testing.assert_close(traced(q, k), Block()(q, k), rtol=0, atol=0)
    exec(compile(traced.code, "<traced>", "exec"), {"torch": torch, "attention_op_sdpa": sdpa})  # its text is Python


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("only", ["smscope", None])
def test_make_fx_traces_for_every_size(mode, only):
    def model(q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return sdpa(q, k, k, is_causal=True, only=only) + sdpa(q[0], k, k, mask)

    inputs = random((2, 2, 8, 16), (2, 2, 12, 16), (8, 12))
    traced = make_fx(model, tracing_mode=mode)(*inputs)
    torch.testing.assert_close(traced(*inputs), model(*inputs), **CLOSE)
    if mode == "symbolic":
        others = random((3, 2, 9, 16), (3, 2, 11, 16), (9, 11))
        torch.testing.assert_close(traced(*others), model(*others), **CLOSE)


def test_flash_functions_are_traced_as_sdpa_is():
    starts = torch.tensor([0, 3, 8], dtype=torch.int32)

    class Packed(torch.nn.Module):
        def forward(self, q: torch.Tensor, packed: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
            out: Any = flash_attn_func(q, q, q, causal=True)
            return out.flatten(0, 1) + flash_attn_varlen_func(packed, packed, packed, starts, starts, 5, 5)

    q, packed = random((1, 8, 2, 16), (8, 2, 16))
    traced = torch.fx.symbolic_trace(Packed())
    targets = [node.target for node in traced.graph.nodes if node.op == "call_function"]
    assert flash_attn_func in targets and flash_attn_varlen_func in targets
    for trace in (traced, make_fx(Packed(), tracing_mode="symbolic")(q, packed, starts)):
        torch.testing.assert_close(trace(q, packed, starts), Packed()(q, packed, starts), rtol=0, atol=0)


def test_their_signatures_are_those_that_callers_look_into():
    assert {"softcap", "window_size", "sinks"} <= set(inspect.signature(flash_attn_varlen_func).parameters)


def test_what_is_wrong_with_a_type_is_still_said():
    (q,) = random((1, 2, 8, 16))
    with pytest.raises(TypeError, match="is_causal is an int"):
        sdpa(q, q, q, is_causal=1)  # type: ignore[arg-type]


class Functions(TorchFunctionMode):
    """A mode that writes down the functions it stands in front of."""

    def __init__(self) -> None:
        super().__init__()
        self.met: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.met.append(func)
        return func(*args, **(kwargs or {}))


class Own(torch.Tensor):
    """A subclass that adds nothing."""


def test_a_function_mode_meets_the_call_and_a_subclass_comes_back():
    (q,) = random((1, 2, 8, 16))
    with Functions() as functions:
        sdpa(q, q, q)
    assert functions.met[0] is sdpa
    own = sdpa(q.as_subclass(Own), q, q, only="smscope")
    assert type(own) is Own
    torch.testing.assert_close(own.as_subclass(torch.Tensor), F(q, q, q), **CLOSE)


def mapped(in_dims: tuple[int | None, ...], batch: int, dtype: torch.dtype) -> tuple[list[torch.Tensor], Any]:
    """q, k, v and a mask with the mapped dimension where `in_dims` has it."""
    inputs = random((3, batch, 2, 5, 16), (3, batch, 2, 7, 16), (3, batch, 2, 7, 16), (3, batch, 1, 5, 7))
    inputs[3] = inputs[3] > -0.5 if dtype is torch.bool else inputs[3]
    return [
        each[0] if dim is None else each.movedim(0, dim) for each, dim in zip(inputs, in_dims, strict=True)
    ], in_dims


IN_DIMS = [(None, None, None, 0), (0, 0, 0, 0), (0, None, None, None), (1, 0, None, 2), (0, 0, 0, None)]


@pytest.mark.parametrize("in_dims", IN_DIMS)
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
@pytest.mark.filterwarnings("error::UserWarning")  # torch's loop over single calls says "performance drop"
def test_a_mask_under_vmap_is_folded_into_the_batch(in_dims, batch, dtype):
    inputs, dims = mapped(in_dims, batch, dtype)
    expected = torch.stack(
        [
            F(*(each if dim is None else each.select(dim, at) for each, dim in zip(inputs, dims, strict=True)))
            for at in range(3)
        ]
    )
    torch.testing.assert_close(torch.vmap(sdpa, in_dims=dims)(*inputs), expected, **CLOSE)


def test_vmap_asks_nothing_of_torchs_own_rules_for_masks(monkeypatch):
    """On a GPU these fail: pytorch#161310. On the CPU they have no gradient of a mask."""
    from attention.frontends import sdpa as frontend

    monkeypatch.setattr(frontend, "torch_sdpa", None)
    q, bias = random((3, 1, 2, 8, 16), (3, 8, 8), grad=True)
    out = torch.vmap(lambda each, mask: sdpa(each, each, each, mask))(q, bias)
    expected = torch.stack([F(each, each, each, mask) for each, mask in zip(q, bias, strict=True)])
    torch.testing.assert_close(out, expected, **CLOSE)
    assert_same_gradients(out, expected, (q, bias), **CLOSE)


def test_two_maps_and_their_gradients():
    q, k = random((3, 4, 2, 5, 16), (4, 1, 2, 7, 16), grad=True)
    mask = torch.ones(4, 5, 7, dtype=torch.bool).tril(2)

    def model(q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.vmap(sdpa)(q[:, None], k, k, mask)

    out = torch.vmap(model, in_dims=(0, None, None))(q, k, mask)
    expected = torch.stack(
        [
            torch.stack([F(each[None], keys, keys, seen) for each, keys, seen in zip(rows, k, mask, strict=True)])
            for rows in q
        ]
    )
    torch.testing.assert_close(out, expected, **CLOSE)
    assert_same_gradients(out, expected, (q, k), **CLOSE)


@pytest.mark.parametrize("slopes", [None, (2,), (3, 2), (2, 2), (3, 2, 2)])
@pytest.mark.parametrize("sinks", [None, (2,), (3, 2)])
def test_features_under_vmap(slopes, sinks):
    q, k = random((3, 2, 5, 2, 16), (3, 2, 7, 2, 16))
    extras = [None if shape is None else random(shape)[0].abs() for shape in (slopes, sinks)]
    dims = (0, 0, 0 if slopes in ((3, 2), (3, 2, 2)) else None, 0 if sinks == (3, 2) else None)

    def call(q: Any, k: Any, slopes: Any, sinks: Any) -> Any:
        return flash_attn_func(q, k, k, causal=True, alibi_slopes=slopes, sinks=sinks)

    expected = torch.stack(
        [
            call(*(each if dim is None else each[at] for each, dim in zip((q, k, *extras), dims, strict=True)))
            for at in range(3)
        ]
    )
    torch.testing.assert_close(torch.vmap(call, in_dims=dims)(q, k, *extras), expected, **CLOSE)


def test_packed_sequences_under_vmap():
    (q,) = random((3, 8, 2, 16))
    starts = torch.tensor([0, 3, 8], dtype=torch.int32)

    def call(q: torch.Tensor) -> Any:
        return flash_attn_varlen_func(q, q, q, starts, starts, 5, 5, causal=True)

    torch.testing.assert_close(torch.vmap(call)(q), torch.stack([call(each) for each in q]), **CLOSE)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's own
def test_gradient_transforms_around_vmap_keep_torchs_function():
    q, bias = random((3, 1, 2, 8, 16), (3, 8, 8))

    def loss(q: torch.Tensor, function: Callable[..., torch.Tensor]) -> torch.Tensor:
        return torch.vmap(lambda each, mask: function(each, each, each, mask > 0))(q, bias).sum()

    torch.testing.assert_close(torch.func.grad(loss)(q, sdpa), torch.func.grad(loss)(q, F), **CLOSE)
    with pytest.raises(UnsupportedError, match="not supported by attention"):
        torch.func.grad(lambda q: sdpa(q, q, q, only="smscope").sum())(q)


COUNTED = [((2, 4, 8, 16), (2, 4, 12, 16), 16), ((2, 4, 8, 16), (2, 2, 12, 16), 24), ((1, 1, 8, 64), (1, 1, 8, 64), 64)]


@pytest.mark.parametrize(("query", "key", "width"), COUNTED)
@pytest.mark.parametrize("causal", [False, True])
def test_flops_are_counted_as_torchs(query, key, width, causal, monkeypatch):
    """Eager calls that would pass the dispatcher by, and their gradients."""
    value = (*key[:3], width)
    once = sdpa_flop_count(query, (*query[:2], *key[2:]), (*query[:2], *value[2:]))
    thrice = sdpa_backward_flop_count((*query[:3], width), query, (*query[:2], *key[2:]), (*query[:2], *value[2:]))
    q, k, v = random(query, key, value)
    with FlopCounterMode(display=False) as counter:
        sdpa(q, k, v, is_causal=causal, enable_gqa=True, only="smscope")
    assert counter.get_total_flops() == once
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        sdpa(q, k, v, is_causal=causal, enable_gqa=True, only="smscope")
    assert counter.get_total_flops() == once
    for each in (q, k, v):
        each.requires_grad_()
    with FlopCounterMode(display=False) as counter:
        sdpa(q, k, v, is_causal=causal, enable_gqa=True, only="smscope").sum().backward()
    assert counter.get_total_flops() == once + thrice


def test_flops_of_packed_sequences_are_those_of_each():
    q = random((8, 2, 16), grad=True)[0]
    starts = torch.tensor([0, 3, 8], dtype=torch.int32)
    with FlopCounterMode(display=False) as counter:
        flash_attn_varlen_func(q, q, q, starts, starts, 5, 5).sum().backward()
    shapes = [[(1, 2, length, 16)] * 3 for length in (3, 5)]
    expected = sum(sdpa_flop_count(*each) + sdpa_backward_flop_count(each[0], *each) for each in shapes)
    assert counter.get_total_flops() == expected


def test_a_counter_that_is_imported_later_knows_our_operators():
    """Importing it early would bring Triton along."""
    program = """
import sys, torch
from attention import sdpa
assert "torch.utils.flop_counter" not in sys.modules
from torch.utils.flop_counter import FlopCounterMode
q = torch.ones(1, 2, 8, 16)
with FlopCounterMode(display=False) as counter:
    sdpa(q, q, q, only="smscope")
print(counter.get_total_flops())
"""
    assert int(printed(program)) == sdpa_flop_count(*[(1, 2, 8, 16)] * 3)


def test_an_execution_trace_sees_the_call(tmp_path):
    (q,) = random((1, 2, 8, 16))
    file = tmp_path / "trace.json"
    observer = ExecutionTraceObserver().register_callback(str(file))
    observer.start()
    sdpa(q, q, q, only="smscope")
    flash_attn_func(q, q, q, only="smscope")
    observer.stop()
    observer.unregister_callback()
    names = [node["name"] for node in json.loads(file.read_text())["nodes"]]
    assert names.count("smscope::attention_forward") >= 2  # one for each kernel that a call passes


def test_without_an_observer_an_eager_call_passes_the_dispatcher_by(monkeypatch):
    (q,) = random((1, 2, 8, 16))
    sdpa(q, q, q, only="smscope")
    monkeypatch.setattr(dispatch, "needs_no_dispatch", lambda *tensors: not found.append(_needs(*tensors)))
    found: list[bool] = []
    from attention.op.eager import needs_no_dispatch as _needs

    sdpa(q, q, q, only="smscope")
    assert found == [True]
