"""attn_implementation="smscope": tiny random models of Transformers, each against its eager attention."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import transformers as hf

from attention import EnvironmentLacks, UnsupportedError
from attention.integrations import transformers as smscope
from attention.integrations.band_mask import BandMask, KeyBand
from tests.tiny_models import (
    DECODERS,
    ENCODERS,
    PACKED,
    WINDOW,
    greedy,
    made,
    one_by_one,
    packed,
    padded,
    second_chunk,
    tokens,
)

pytestmark = [
    pytest.mark.usefixtures("host_machine"),
    pytest.mark.filterwarnings("ignore::attention.FallbackWarning"),
    pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def registered():
    smscope.register()
    smscope.register()


@pytest.fixture
def seen(monkeypatch):
    """The band and the mask's shape of each call that reaches a kernel."""
    found, attend = [], smscope.attend

    def spy(query, key, value, mask, band, **options):
        found.append((band, None if mask is None else tuple(mask.shape)))
        return attend(query, key, value, mask, band, **options)

    monkeypatch.setattr(smscope, "attend", spy)
    return found


def both(model, call):
    """What a call gives by eager attention, and by ours."""
    found = []
    for name in ("eager", "smscope"):
        model.set_attn_implementation(name)
        with torch.no_grad():
            found.append(call(model))
    return found


def close(found, expected, says=""):
    scale = expected.abs().max()
    torch.testing.assert_close(found / scale, expected / scale, rtol=0, atol=2e-5, msg=lambda text: f"{says}: {text}")


@pytest.mark.parametrize("name", DECODERS)
def test_logits_are_those_of_eager_attention(name, seen):
    model = made(name)
    calls = {
        "full": lambda model: model(tokens(2)).logits,
        "left": lambda model: model(**padded("left")).logits[1, 7:],
        "right": lambda model: model(**padded("right")).logits[1, :-7],
        "chunk": second_chunk,
        "packed": lambda model: model(**packed()).logits,
    }
    for case, call in calls.items():
        expected, found = both(model, call)
        close(found, expected, case)
    assert seen


@pytest.mark.parametrize("name", DECODERS)
def test_greedy_tokens_are_those_of_eager_attention(name):
    model = made(name)
    for inputs in ({"input_ids": tokens(2)}, padded("left")):
        for options in ({}, {"cache_implementation": "static"}):
            expected, found = both(
                model, lambda model, inputs=inputs, options=options: greedy(model, inputs, **options)
            )
            assert found == expected, options


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_are_those_of_eager_attention(name):
    model = made(name)
    more = {"decoder_input_ids": tokens(2, 5)} if name == "t5" else {}
    rows = slice(None) if name == "t5" else slice(None, -7)
    for inputs in ({"input_ids": tokens(2)}, padded("right")):
        expected, found = both(model, lambda model, inputs=inputs: model(**inputs, **more).logits)
        close(found[0], expected[0])
        close(found[1, rows], expected[1, rows])
    if name == "t5":
        expected, found = both(model, lambda model: greedy(model, padded("right")))
        assert found == expected


@pytest.mark.parametrize("name", ["gemma2", "gpt_oss", "t5"])
def test_gradients_are_those_of_eager_attention(name):
    model = made(name).train()
    inputs = padded("right")
    labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
    getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)()

    def gradients(model):
        with torch.enable_grad():
            model(**inputs, labels=labels, use_cache=False).loss.backward()
        found = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
        model.zero_grad(set_to_none=True)
        return found

    expected, found = both(model, gradients)
    assert found.keys() == expected.keys()
    largest = max(each.abs().max() for each in expected.values())
    for each, gradient in expected.items():
        torch.testing.assert_close(found[each] / largest, gradient / largest, rtol=0, atol=2e-5)


def test_packed_sequences_stay_apart_by_positions_and_by_their_starts():
    model = made("llama")
    model.set_attn_implementation("smscope")
    starts = torch.tensor([0, *PACKED], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    lengths = {"max_length_q": max(PACKED), "max_length_k": max(PACKED)}
    inputs = packed()
    with torch.no_grad():
        expected = one_by_one(model)
        close(model(**inputs).logits, expected)
        # Positions alone are not looked at where there is a cache.
        starts = {"cu_seq_lens_q": starts, "cu_seq_lens_k": starts, **lengths}
        close(model(**inputs | {"use_cache": True}, **starts).logits, expected)


def test_windows_and_padding_reach_the_kernel_as_such(seen):
    model = made("gemma2")
    model.set_attn_implementation("smscope")
    with torch.no_grad():
        model(**padded("left"))
        second_chunk(model)
    window, causal = KeyBand(WINDOW - 1, 0), KeyBand(None, 0)
    later = [(KeyBand(WINDOW - 1, 0, bottom_right=True), None), (KeyBand(None, 0, bottom_right=True), None)]
    assert seen == [(window, (2, 1, 1, 20)), (causal, (2, 1, 1, 20)), (window, None), (causal, None), *later]


def test_a_model_that_never_says_its_window_has_it():
    config = {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 0}
    sizes = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16, "decoder_sparse_step": 5}
    torch.manual_seed(0)
    small = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    model = hf.Qwen2MoeForCausalLM(hf.Qwen2MoeConfig(**small, **heads, **sizes, **config)).eval()
    expected, found = both(model, lambda model: model(tokens(2)).logits)
    close(found, expected)


def mask(band=None, keys=None, rows=5, columns=7):
    return BandMask(2, rows, columns, torch.device("cpu"), band or KeyBand(2, 0, bottom_right=True), keys)


def test_a_band_mask_is_dense_for_whoever_looks():
    keys = torch.ones(2, 7, dtype=torch.bool)
    keys[1, :3] = False
    lazy, dense = mask(keys=keys), torch.zeros(2, 1, 5, 7, dtype=torch.bool)
    for i in range(5):
        dense[:, :, i, i : i + 3] = True
    dense[1, ..., :3] = False
    assert lazy.shape == dense.shape and lazy.dtype == torch.bool and lazy.ndim == 4 and lazy.band is not None
    assert lazy.to("cpu") is lazy and lazy.band is not None
    assert torch.equal(lazy[:, :, 1:, :-1], dense[:, :, 1:, :-1])
    assert torch.equal(torch.where(lazy, 1.0, 0.0), dense.float()) and torch.equal(lazy.dense(), dense)


def test_what_a_model_writes_into_a_mask_is_heard(seen):
    q, k, v = (torch.randn(1, 2, size, 4) for size in (5, 7, 7))
    lazy = BandMask(1, 5, 7, torch.device("cpu"), KeyBand(2, 0, bottom_right=True), None)
    lazy[..., 2] = False
    out, _ = smscope.attention_forward(SimpleNamespace(), q, k, v, lazy)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, lazy.dense())
    torch.testing.assert_close(out.transpose(1, 2), expected)
    assert not lazy.dense()[..., 2].any() and seen[0][1] == (1, 1, 5, 7)


@pytest.mark.parametrize("shape", [(4, 4), (1, 9), (3, 9)])
@pytest.mark.parametrize("band", [KeyBand(), KeyBand(None, 0), KeyBand(2, 0), KeyBand(2, 1), KeyBand(3, 0, True)])
@pytest.mark.parametrize("with_keys", [False, True])
def test_bands_hide_what_their_dense_masks_hide(shape, band, with_keys):
    rows, columns = shape
    q, k, v = torch.randn(2, 4, rows, 8), torch.randn(2, 2, columns, 8), torch.randn(2, 2, columns, 6)
    keys = torch.rand(2, columns) < 0.7 if with_keys else None
    given = {"softcap": 2.0, "s_aux": torch.randn(4)}
    lazy, dense = (mask(band, keys, rows, columns) for _ in range(2))
    for features in ({}, given):
        found, _ = smscope.attention_forward(SimpleNamespace(), q, k, v, lazy, **features)
        expected, _ = smscope.attention_forward(SimpleNamespace(), q, k, v, dense.dense(), **features)
        assert found.shape == (2, rows, 4, 6) and lazy.band is band
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_dropout_is_torchs_with_the_same_mask():
    q, k, v = torch.randn(2, 4, 9, 8), torch.randn(2, 2, 9, 8), torch.randn(2, 2, 9, 8)
    lazy = mask(KeyBand(2, 0), None, 9, 9)
    torch.manual_seed(3)
    found, _ = smscope.attention_forward(SimpleNamespace(), q, k, v, lazy, dropout=0.4)
    k, v = (each.repeat_interleave(2, dim=1) for each in (k, v))
    torch.manual_seed(3)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, lazy.dense(), dropout_p=0.4)
    torch.testing.assert_close(found.transpose(1, 2), expected)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"indices": torch.zeros(1)}, "'indices' to its attention"),
        ({"block_indices": torch.zeros(1)}, "'block_indices' to its attention"),
        ({"sinks": torch.zeros(1)}, "'sinks' to its attention"),
        ({"cache": type("PagedAttentionCache", (), {})()}, "paged cache"),
        ({"dropout": 0.1, "softcap": 3.0}, "torch has no softcap"),
        ({"dropout": 0.1, "s_aux": torch.zeros(2)}, "torch has no attention sinks"),
        ({"cu_seq_lens_q": torch.zeros(2)}, "one packed row"),
    ],
)
def test_what_would_be_dropped_is_refused(given, says):
    q = torch.randn(2, 2, 4, 8)
    with pytest.raises(UnsupportedError, match=says):
        smscope.attention_forward(SimpleNamespace(), q, q, q, None, **given)


def test_weights_that_nobody_gets_are_warned_of():
    model = made("llama")
    model.set_attn_implementation("smscope")
    q = torch.randn(1, 2, 4, 8)
    with pytest.warns(UserWarning, match="never computes attention weights"):
        smscope.attention_forward(SimpleNamespace(), q, q, q, None, output_attentions=True)


KNOWN = {"scaling", "dropout", "is_causal", "sliding_window", "attention_mask", "position_bias", "softcap", "s_aux"}
KNOWN |= {"cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "output_attentions", *smscope.REFUSED}
KNOWN |= {"query", "key", "value", "position_ids", "deterministic"}


def test_every_name_that_a_model_hands_to_its_attention_is_known():
    root, call = Path(hf.__file__).parent / "models", re.compile(r"attention_interface\(\n(.*?)\n\s+\)\n", re.DOTALL)
    texts = (path.read_text() for path in root.glob("*/modeling_*.py"))
    calls = [found for text in texts if "attention_interface(" in text for found in call.findall(text)]
    indents = (re.findall(r"^(\s+)", each)[0] for each in calls)
    names = {
        name
        for each, indent in zip(calls, indents, strict=True)
        for name in re.findall(rf"^{indent}(\w+)=", each, re.MULTILINE)
    }
    assert len(calls) > 300 and names <= KNOWN


@pytest.mark.parametrize("version", ["4.57.6", "5.16.1", "6.0.0"])
def test_another_transformers_is_named(monkeypatch, version):
    monkeypatch.setattr("transformers.__version__", version)  # which puts a new module in its place as it loads
    with pytest.raises(EnvironmentLacks, match=f"needs Transformers 5.17 or a later 5, and this is {version}"):
        smscope.register()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mistral", "gpt_oss"])
def test_one_graph_holds_a_whole_model(name):
    model = made(name)
    with torch.no_grad():
        cases = [{"input_ids": tokens(2)}, {"input_ids": tokens(2, 13)}, padded("right")]
        expected = [model(**inputs, use_cache=False).logits for inputs in cases]
        model.set_attn_implementation("smscope")
        torch._dynamo.reset()
        graph = torch.compile(model, backend="aot_eager", fullgraph=True)
        for inputs, logits in zip(cases, expected, strict=True):
            found = graph(**inputs, use_cache=False).logits
            rows = slice(None) if "attention_mask" not in inputs else slice(None, -7)
            close(found[:, rows], logits[:, rows])


@pytest.mark.slow
def test_compiled_layers_take_band_masks():
    model = made("mistral")
    expected, _ = both(model, lambda model: model(**padded("left")).logits[1, 7:])
    for layer in model.model.layers:
        layer.compile(backend="eager")
    torch._dynamo.reset()
    with torch.no_grad():
        close(model(**padded("left")).logits[1, 7:], expected)
        close(second_chunk(model), second_chunk(made("mistral")))
