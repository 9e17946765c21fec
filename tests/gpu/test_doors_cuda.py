"""Both doors on a GPU, in bf16: attention.install() and attn_implementation="smscope", against float32 on the CPU.

Error is measured beside that of torch's, or of eager attention's, in the same dtype on the same inputs.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import attention
from attention.integrations import torch_sdpa
from attention.integrations import transformers as smscope
from tests.tiny_models import DECODERS, ENCODERS, greedy, made, packed, padded, second_chunk, tokens

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning"),
]

DEVICE, DTYPE = "cuda", torch.bfloat16
F = torch.nn.functional.scaled_dot_product_attention
MASK = torch.arange(96)[None, :] <= torch.arange(64)[:, None] + 7
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 8, 64, 64), (2, 8, 96, 64), {}),
    "causal": ((2, 8, 96, 128), (2, 8, 96, 128), {"is_causal": True}),
    "grouped": ((2, 8, 64, 64), (2, 2, 96, 64), {"enable_gqa": True}),
    "bool mask": (
        (2, 8, 64, 64),
        (2, 8, 96, 64),
        {"attn_mask": MASK.to(DEVICE) if torch.cuda.is_available() else MASK},
    ),
    "float mask": ((2, 8, 64, 64), (2, 8, 96, 64), {"attn_mask": torch.linspace(-2, 0, 96, dtype=DTYPE)[None]}),
    "decode": ((4, 8, 1, 128), (4, 2, 700, 128), {"enable_gqa": True}),
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, ...]]]:
    """The queries that reach attention.sdpa through the override."""
    seen: list[tuple[int, ...]] = []
    sdpa = torch_sdpa.sdpa

    def spy(query: torch.Tensor, *inputs: Any) -> torch.Tensor:
        seen.append(tuple(query.shape))
        return sdpa(query, *inputs)

    monkeypatch.setattr(torch_sdpa, "sdpa", spy)
    yield seen
    attention.uninstall()


def computed(call: Any, inputs: list[torch.Tensor], options: dict[str, Any]) -> list[torch.Tensor]:
    """Out, and the gradients of its squares, in float32 on the CPU."""
    leaves = [each.detach().requires_grad_() for each in inputs]
    out = call(*leaves, **options)
    return [each.float().cpu() for each in (out, *torch.autograd.grad(out.float().square().sum(), leaves))]


def exact(inputs: list[torch.Tensor], options: dict[str, Any]) -> list[torch.Tensor]:
    mask = options.get("attn_mask")
    if mask is not None:
        options = options | {"attn_mask": mask.cpu() if mask.dtype == torch.bool else mask.cpu().float()}
    return computed(F, [each.detach().float().cpu() for each in inputs], options)


def no_worse(ours: list[torch.Tensor], theirs: list[torch.Tensor], truth: list[torch.Tensor]) -> None:
    for mine, other, right in zip(ours, theirs, truth, strict=True):
        size = right.abs().max()
        assert (mine - right).abs().max() / size <= 2.0 * (other - right).abs().max() / size + 4e-3


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
def test_results_and_gradients_are_as_exact_as_torchs(case, backend, calls):
    query, key, options = CASES[case]
    options = {name: value.to(DEVICE) if isinstance(value, torch.Tensor) else value for name, value in options.items()}
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).to(DEVICE, DTYPE) for shape in (query, key, key)]
    theirs = computed(F, inputs, options)
    torch._dynamo.reset()

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F(q, k, v, **options)

    with attention.installed():
        ours = computed(torch.compile(call, backend=backend, fullgraph=True) if backend else call, inputs, {})
    assert calls
    no_worse(ours, theirs, exact(inputs, options))


def test_modules_transforms_and_nested_tensors_come_through(calls):
    torch.manual_seed(0)
    heads = torch.nn.MultiheadAttention(128, 2, batch_first=True, device=DEVICE, dtype=DTYPE)
    layer = torch.nn.TransformerEncoderLayer(128, 2, 128, dropout=0.0, batch_first=True, device=DEVICE, dtype=DTYPE)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = torch.randn(2, 48, 128, device=DEVICE, dtype=DTYPE, requires_grad=True)
    q = torch.randn(3, 2, 32, 64, device=DEVICE, dtype=DTYPE)
    jagged = torch.nested.nested_tensor([q[0].transpose(0, 1), q[1].transpose(0, 1)[:20]], layout=torch.jagged)
    jagged = jagged.transpose(1, 2)

    def found() -> list[torch.Tensor]:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            mapped = [torch.vmap(F)(q, q, q), torch.func.grad(lambda q: F(q, q, q).float().sum())(q)]
        return [heads(x, x, x, need_weights=False)[0], encoder(x), *mapped, *F(jagged, jagged, jagged).unbind()]

    theirs = found()
    with attention.installed():
        ours = found()
    assert len(calls) == 3
    torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)


def test_a_captured_graph_replays_what_was_installed(calls):
    q, k, v = (torch.randn(2, 8, 128, 64, device=DEVICE, dtype=DTYPE) for _ in range(3))
    with attention.installed():
        F(q, k, v, is_causal=True)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = F(q, k, v, is_causal=True)
    q.normal_()
    graph.replay()
    torch.testing.assert_close(out, F(q, k, v, is_causal=True), rtol=2e-2, atol=2e-2)


@pytest.fixture(autouse=True)
def _registered() -> None:
    smscope.register()


def logits(name: str, model: Any, device: str) -> list[torch.Tensor]:
    """Of every way to call a model, where there is no padding."""
    if name in ENCODERS:
        more = {"decoder_input_ids": tokens(2, 5, device)} if name == "t5" else {}
        rows = slice(None) if more else slice(None, -7)
        found = [
            model(tokens(2, device=device), **more).logits,
            model(**padded("right", device), **more).logits[1, rows],
        ]
    else:
        found = [
            model(tokens(2, device=device)).logits,
            model(**padded("left", device)).logits[1, 7:],
            model(**padded("right", device)).logits[1, :-7],
            model(**packed(device)).logits,
            second_chunk(model, device),
        ]
    return [each.float().cpu() for each in found]


@pytest.mark.parametrize("name", [*DECODERS, *ENCODERS])
def test_logits_are_as_exact_as_eager_attentions(name):
    with torch.no_grad():
        truth = logits(name, made(name), "cpu")
        model = made(name, DEVICE, DTYPE)
        theirs = logits(name, model, DEVICE)
        model.set_attn_implementation("smscope")
        ours = logits(name, model, DEVICE)
    for mine, other, right in zip(ours, theirs, truth, strict=True):
        # Experts are chosen by a comparison, which rounding may turn: the mean, not the largest error.
        assert (mine - right).abs().mean() <= 1.5 * (other - right).abs().mean() + 1e-3 * right.abs().max()


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss"])
def test_greedy_tokens_in_float32_are_those_of_eager_attention(name):
    model = made(name, DEVICE)
    for inputs in ({"input_ids": tokens(2, device=DEVICE)}, padded("left", DEVICE)):
        for options in ({}, {"cache_implementation": "static"}):
            model.set_attn_implementation("eager")
            expected = greedy(model, inputs, **options)
            model.set_attn_implementation("smscope")
            assert greedy(model, inputs, **options) == expected


@pytest.mark.parametrize("name", ["llama", "gpt_oss"])
def test_a_model_generates_in_bf16(name):
    model = made(name, DEVICE, DTYPE)
    model.set_attn_implementation("smscope")
    for options in (
        {},
        {"cache_implementation": "static"},
        {"cache_implementation": "static", "disable_compile": False},
    ):
        found = greedy(model, padded("left", DEVICE), **options)
        assert len(found) == 2 and all(len(row) == 28 for row in found)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss"])
def test_gradients_are_as_exact_as_eager_attentions(name):
    def gradients(model: Any, device: str) -> torch.Tensor:
        inputs = padded("right", device)
        labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
        model(**inputs, labels=labels, use_cache=False).loss.backward()
        found = [each.grad.float().cpu().flatten() for each in model.parameters() if each.grad is not None]
        model.zero_grad(set_to_none=True)
        return torch.cat(found)

    truth = gradients(made(name).train(), "cpu")
    model = made(name, DEVICE, DTYPE).train()
    theirs = gradients(model, DEVICE)
    model.set_attn_implementation("smscope")
    ours = gradients(model, DEVICE)
    assert (ours - truth).norm() <= 1.5 * (theirs - truth).norm() + 1e-3 * truth.norm()


def test_ten_steps_of_training_by_both_doors_follow_eager_attention():
    def losses(implementation: str) -> list[float]:
        model = made("llama", DEVICE).train()
        model.set_attn_implementation(implementation)
        optimiser, ids, found = torch.optim.AdamW(model.parameters(), lr=1e-3), tokens(4, 64, DEVICE), []
        for _ in range(10):
            loss = model(ids, labels=ids, use_cache=False).loss
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()
            found.append(loss.item())
        return found

    expected = losses("eager")
    assert losses("smscope") == pytest.approx(expected, rel=1e-3)
    with attention.installed():
        assert losses("sdpa") == pytest.approx(expected, rel=1e-3)
