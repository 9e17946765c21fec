"""What peers are asked for a problem: an argument, a mask or an operator that says it, or a sentence why not."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attention.call import Tensors
from attention.campaign import checked
from attention.campaign.posed import Posed, parse
from attention.compare import candidates, torchs
from attention.errors import UnsupportedError
from attention.kernels.torch.composed import slow
from attention.variant import Config

CPU = torch.device("cpu")
MATH = torch.nn.attention.SDPBackend.MATH


def given(text: str) -> tuple[Posed, Tensors]:
    posed = parse(text)
    return posed, checked.inputs(posed, CPU)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("short 2 4 4 70 70 64 bf16 causal", None),
        ("short 2 4 4 70 70 64/32 bf16 causal", None),
        ("prefill 1 4 2 40 200 64 bf16 causal", (1, 1, 40, 200)),
        ("features 2 4 4 70 90 64 bf16 mask", (1, 1, 70, 90)),
        ("features 2 4 4 70 90 64 bf16 bias=f32", (1, 1, 70, 90)),
        ("features 2 4 4 70 70 64 bf16 causal mask", (1, 1, 70, 70)),
        ("features 2 4 4 70 70 64 bf16 causal bias", (1, 1, 70, 70)),
        ("features 3 4 2 40 200 64 bf16 causal used=150+200+77", (3, 1, 40, 200)),
        ("decode 2 4 1 1 300 64 bf16 used=17+300", (2, 1, 1, 300)),
    ],
)
def test_torchs_function_is_right_with_the_mask_that_it_is_given(text: str, shape: tuple[int, ...] | None) -> None:
    posed, tensors = given(text)
    mask = torchs.mask_of(posed.problem, tensors)
    assert (mask is None) == (shape is None) and (mask is None or tuple(mask.shape) == shape)
    assert checked.part_of(posed, tensors).judged(torchs.sdpa(posed.problem, tensors, MATH)()).ok


@pytest.mark.parametrize(
    ("prepare", "text", "said"),
    [
        (torchs.flash, "features 1 2 2 64 64 64 bf16 mask", "has no bool mask"),
        (torchs.flash, "features 1 2 2 64 64 64 bf16 causal softcap=20", "has no softcap"),
        (torchs.cudnn, "packed 0 2 2 0 0 64 bf16 lengths=20+30", "neither packed sequences nor windows on to cuDNN"),
        (torchs.efficient, "features 1 2 2 64 64 64 bf16 causal window=9", "neither for packed sequences nor"),
        (torchs.efficient, "features 1 2 2 64 64 64 bf16 sinks", "has no attention sinks"),
        (torchs.flex, "features 1 2 2 64 64 64 bf16 bias", "has no float mask"),
    ],
)
def test_what_a_kernel_of_torchs_does_not_compute_is_refused_by_name(prepare: Any, text: str, said: str) -> None:
    posed, tensors = given(text)
    with pytest.raises(UnsupportedError, match=said):
        prepare(posed.problem, tensors)


@pytest.mark.parametrize(
    "text",
    [
        "packed 0 4 2 0 0 64 bf16 causal lengths=40+130+20",
        "features 3 4 2 40 200 64 bf16 causal used=150+200+77",
        "features 1 4 4 150 150 64 bf16 causal window=32",
        "prefill 1 4 2 40 200 64 bf16 causal",
    ],
)
def test_torchs_flash_operator_is_told_where_sequences_lie(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    posed, tensors = given(text)
    problem, told = posed.problem, dict[str, Any]()

    def operator(q: Any, k: Any, v: Any, starts_q: Any, starts_k: Any, *rest: Any, **options: Any) -> tuple[Any]:
        told.update(options, starts=(starts_q, starts_k), rest=rest, shapes=(q.shape, k.shape))
        out, _ = slow.forward(tensors.query, tensors.key, tensors.value, problem, Config(), tensors.extras)
        return (out.transpose(1, 2).reshape(*q.shape[:-1], v.shape[-1]),)

    monkeypatch.setattr(torch.ops, "aten", SimpleNamespace(_flash_attention_forward=operator))
    call = torchs.flash(problem, tensors)
    out = call()
    monkeypatch.undo()
    assert checked.part_of(posed, tensors).judged(out).ok
    assert told["rest"] == (problem.seq_q, problem.seq_kv, 0.0, True, False)
    if posed.used:
        assert [each.tolist() for each in told["starts"]] == [[0, 40, 80, 120], [0, 200, 400, 600]]
        assert told["shapes"][1] == (600, 2, 64) and told["seqused_k"].tolist() == [150, 200, 77]
    elif posed.lengths:
        assert told["starts"][0].tolist() == [0, 40, 170, 190] and told["shapes"][0] == (190, 4, 64)
    else:
        assert told["starts"] == (None, None) and told["shapes"][0][1] == problem.seq_q
    assert told.get("window_size_left") == (32 if problem.window != (-1, -1) else None)


@pytest.fixture
def flash_4(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What FlashAttention-4 was asked last, where it is installed."""
    told: dict[str, Any] = {}

    def function(name: str) -> Any:
        def call(q: Any, k: Any, v: Any, **options: Any) -> tuple[Any, None]:
            told.clear()
            told.update(options, function=name, shape=tuple(q.shape))
            return torch.zeros(*q.shape[:-1], v.shape[-1]), None

        return call

    names = ("flash_attn_func", "flash_attn_varlen_func")
    module = SimpleNamespace(**{name: function(name) for name in names})
    monkeypatch.setitem(sys.modules, "flash_attn", SimpleNamespace(cute=module))
    monkeypatch.setitem(sys.modules, "flash_attn.cute", module)
    monkeypatch.setattr(candidates, "_installed", lambda name: name == candidates.FLASH_4_PACKAGE)
    monkeypatch.setattr(candidates.metadata, "version", lambda name: "4.0")
    return told


def ask_flash_4(text: str) -> Any:
    posed, tensors = given(text)
    (peer,) = (each for each in candidates.peers(flex=False) if each.name == candidates.FLASH_4)
    return peer.prepare(posed.problem, tensors)()


def test_flash_attention_4_is_asked_by_its_own_words(flash_4: dict[str, Any]) -> None:
    assert ask_flash_4("prefill 2 4 2 64 64 64/32 bf16 causal").shape == (2, 4, 64, 32)
    assert flash_4["function"] == "flash_attn_func" and flash_4["causal"] and flash_4["window_size"] == (None, None)
    assert ask_flash_4("packed 0 4 2 0 0 64 bf16 lengths=20+30").shape == (1, 4, 50, 64)
    assert flash_4["function"] == "flash_attn_varlen_func" and flash_4["shape"] == (50, 4, 64)
    assert flash_4["cu_seqlens_k"].tolist() == [0, 20, 50] and flash_4["max_seqlen_q"] == 30
    ask_flash_4("decode 2 4 1 1 300 64 bf16 used=17+300")
    assert flash_4["function"] == "flash_attn_varlen_func" and flash_4["seqused_k"].tolist() == [17, 300]
    assert flash_4["shape"] == (2, 1, 4, 64) and flash_4["seqused_q"] is None
    ask_flash_4("features 2 4 4 64 64 64 bf16 causal window=16 softcap=30")
    assert not flash_4["causal"] and flash_4["window_size"] == (16, 0) and flash_4["softcap"] == 30


def test_flash_attention_4_takes_no_dense_mask(flash_4: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match="FlashAttention-4 has no bool mask"):
        ask_flash_4("features 2 4 4 64 64 64 bf16 mask")
