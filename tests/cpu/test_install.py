"""attention.install(): torch's own function by attention.sdpa, wherever it is called from."""

import threading

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import attention
from attention import EnvironmentLacks
from attention.integrations import torch_sdpa
from tests.elsewhere import ROOT, printed
from tests.tensors import random

F = torch.nn.functional.scaled_dot_product_attention
CLOSE = {"rtol": 0, "atol": 1e-5}
SCRIPTED = "ignore:`torch.jit.script:DeprecationWarning"  # torch's own use of it

pytestmark = pytest.mark.usefixtures("host_machine")


@pytest.fixture
def calls(monkeypatch):
    """The queries that reach attention.sdpa, which takes our own kernel or refuses."""
    seen = []

    def sdpa(query, *inputs):
        seen.append(tuple(query.shape))
        return attention.sdpa(query, *inputs, only="smscope")

    monkeypatch.setattr(torch_sdpa, "sdpa", sdpa)
    yield seen
    attention.uninstall()
    assert torch_sdpa._override.library is None and not torch.compiler.config.cache_key_tag


MASK = torch.arange(20)[None, :] <= torch.arange(12)[:, None] + 3
CASES = {
    "plain": ((2, 4, 12, 8), (2, 4, 20, 8), {}),
    "causal": ((2, 4, 12, 8), (2, 4, 20, 8), {"is_causal": True, "scale": 0.5}),
    "grouped": ((2, 4, 12, 8), (2, 2, 20, 8), {"enable_gqa": True}),
    "float mask": ((2, 4, 12, 8), (2, 4, 20, 8), {"attn_mask": MASK.float()}),
    "three dimensions": ((4, 12, 8), (4, 20, 8), {}),
}


def test_where_ours_can_be_given_nothing_torchs_kernel_stays(calls, monkeypatch):
    monkeypatch.setattr(torch_sdpa, "cpu_is_torchs", lambda: True)
    with attention.installed():
        assert torch_sdpa._override.keys == ("CUDA", "AutogradCUDA")
        F(*random((2, 4, 12, 8), (2, 4, 20, 8), (2, 4, 20, 8)))
    assert not calls


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backend", [None, "aot_eager"])
def test_results_and_gradients_are_torchs(calls, case, backend):
    query, key, options = CASES[case]
    q, k, v = random(query, key, key, grad=True)

    def call(q, k, v):
        return F(q, k, v, **options)

    expected = call(q, k, v)
    wanted = torch.autograd.grad(expected.square().sum(), (q, k, v))
    torch._dynamo.reset()
    with attention.installed():
        out = (torch.compile(call, backend=backend, fullgraph=True) if backend else call)(q, k, v)
    found = torch.autograd.grad(out.square().sum(), (q, k, v))
    assert calls and out.shape == expected.shape and out.stride() == expected.stride()
    torch.testing.assert_close((out, *found), (expected, *wanted), rtol=0, atol=5e-5)


def test_one_graph_serves_every_length(calls):
    torch._dynamo.reset()
    graph = torch.compile(lambda q, k: F(q, k, k, is_causal=True), backend="aot_eager", fullgraph=True, dynamic=True)
    for rows, columns in ((5, 9), (7, 12), (30, 20)):
        q, k = random((2, 4, rows, 8), (2, 4, columns, 8))
        with attention.installed():
            found = graph(q, k)
        torch.testing.assert_close(found, F(q, k, k, is_causal=True), **CLOSE)
    assert calls and not all(isinstance(size, int) for size in calls[0])


def test_a_symbolic_trace_before_hides_the_kernels_from_none_after(calls):
    (q,) = random((2, 4, 12, 8))
    make_fx(lambda x: F(x, x, x), tracing_mode="symbolic")(q)
    torch._dynamo.reset()
    with attention.installed():
        torch.compile(lambda x: F(x, x, x), backend="aot_eager", fullgraph=True)(q)
    assert calls


@pytest.mark.slow
@pytest.mark.filterwarnings(SCRIPTED)
@pytest.mark.parametrize("case", ["causal", "grouped", "float mask"])
def test_the_compiler_keeps_it_in_its_kernels(calls, case, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    query, key, options = CASES[case]
    q, k, v = random(query, key, key, grad=True)
    expected = F(q, k, v, **options)
    torch._dynamo.reset()
    with attention.installed():
        out = torch.compile(lambda q, k, v: F(q, k, v, **options), fullgraph=True)(q, k, v)
    torch.testing.assert_close(out, expected, **CLOSE)
    wanted = torch.autograd.grad(expected.sum(), (q, k, v))
    torch.testing.assert_close(torch.autograd.grad(out.sum(), (q, k, v)), wanted, **CLOSE)


def test_modules_of_torch_come_through(calls):
    torch.manual_seed(0)
    heads = torch.nn.MultiheadAttention(16, 2, batch_first=True)
    encoder = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False
    )
    (x,) = random((2, 10, 16), grad=True)
    hidden = torch.zeros(2, 10, dtype=torch.bool)
    hidden[1, 7:] = True
    expected = heads(x, x, x, need_weights=False)[0], encoder(x), encoder(x, src_key_padding_mask=hidden)
    with attention.installed():
        found = heads(x, x, x, need_weights=False)[0], encoder(x), encoder(x, src_key_padding_mask=hidden)
    assert len(calls) == 5
    torch.testing.assert_close(found, expected, **CLOSE)


def test_dropout_is_torchs(calls):
    q, k, v = random(*[(1, 2, 8, 4)] * 3)
    torch.manual_seed(3)
    expected = F(q, k, v, dropout_p=0.5)
    torch.manual_seed(3)
    with attention.installed():
        assert torch.equal(F(q, k, v, dropout_p=0.5), expected)


@pytest.mark.filterwarnings(SCRIPTED)
def test_transforms_are_torchs(calls):
    q, k, v = random(*[(3, 2, 8, 4)] * 3)

    def loss(q):
        return F(q, k, v).square().sum()

    def each(q, k, v):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return torch.vmap(F)(q, k, v)

    def tangent():
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), torch.autograd.forward_ad.dual_level():
            out = F(torch.autograd.forward_ad.make_dual(q, k), k, v)
            return torch.autograd.forward_ad.unpack_dual(out).tangent

    expected = torch.func.grad(loss)(q), each(q, k, v), tangent()
    with attention.installed():
        found = torch.func.grad(loss)(q), each(q, k, v), tangent()
    assert not calls
    torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested:UserWarning")
def test_fakes_meta_tensors_and_nested_ones_are_torchs(calls):
    jagged = torch.nested.nested_tensor([torch.randn(3, 2, 8), torch.randn(5, 2, 8)], layout=torch.jagged)
    jagged = jagged.transpose(1, 2)
    expected = F(jagged, jagged, jagged)
    with attention.installed():
        torch.testing.assert_close(F(jagged, jagged, jagged).unbind(), expected.unbind())
        assert F(*[torch.empty(1, 2, 8, 4, device="meta")] * 3).is_meta
        with torch._subclasses.FakeTensorMode():
            assert F(*[torch.empty(1, 2, 8, 4)] * 3).shape == (1, 2, 8, 4)
    assert not calls


class Model(torch.nn.Module):
    def forward(self, x):
        return F(x, x, x, is_causal=True)


@pytest.mark.filterwarnings("ignore:`isinstance:FutureWarning")
def test_an_exported_graph_holds_torchs_operator(calls):
    (x,) = random((1, 2, 8, 4))
    with attention.installed():
        program = torch.export.export(Model(), (x,)).run_decompositions({})
    names = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert names == ["aten.scaled_dot_product_attention.default"]
    torch.testing.assert_close(program.module()(x), Model()(x))


def test_it_serves_in_inference_mode_and_under_autocast(calls):
    q, k, v = random(*[(1, 2, 8, 4)] * 3)
    expected = F(q, k, v)
    with attention.installed():
        with torch.inference_mode():
            torch.testing.assert_close(F(q, k, v), expected, **CLOSE)
        with torch.autocast("cpu", torch.bfloat16):
            assert F(q, k, v).dtype == torch.bfloat16
    assert len(calls) == 2


def test_what_torch_refuses_is_refused_in_its_words(calls):
    q, k, v = random((1, 2, 8, 4), (1, 2, 8, 6), (1, 2, 8, 6))
    with attention.installed(), pytest.raises(RuntimeError, match="Expected size"):
        F(q, k, v)
    assert calls


def test_install_and_uninstall_count_once_and_contexts_nest(calls):
    q, k, v = random(*[(1, 2, 8, 4)] * 3)

    def serves():
        calls.clear()
        F(q, k, v)
        return bool(calls)

    assert not serves()
    attention.install()
    attention.install()
    with attention.installed():
        assert serves()
    assert serves()
    attention.uninstall()
    assert not serves()
    attention.uninstall()
    with attention.installed(), attention.installed():
        attention.uninstall()
        assert serves()
    assert not serves()


def test_a_fallback_of_ours_reaches_torchs_kernel_and_not_itself(monkeypatch):
    q, k, v = random(*[(1, 8, 128, 64)] * 3)
    mask = torch.zeros(128, 128)
    with attention.installed(), pytest.warns(attention.FallbackWarning, match="float mask"):
        found = F(q, k, v, mask), attention.sdpa(q, k, v, mask)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", attention.sdpa)
    again = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)
    torch.testing.assert_close((*found, again), (F(q, k, v),) * 3, **CLOSE)


def test_threads_may_call_while_another_installs(calls):
    q, k, v = random(*[(1, 2, 32, 8)] * 3)
    expected, stop, wrong = F(q, k, v), threading.Event(), []

    def call():
        while not stop.is_set():
            if not torch.allclose(F(q, k, v), expected, atol=1e-5):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(3)]
    with attention.installed():  # torch's table of kernels changes here, and not again
        pass
    for thread in threads:
        thread.start()
    for _ in range(100):
        with attention.installed():
            F(q, k, v)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong and calls


def test_an_older_torch_is_named(monkeypatch):
    monkeypatch.delattr(torch.library, "get_kernel")
    with pytest.raises(EnvironmentLacks, match=r"needs torch 2\.10 or newer, and this is 2\."):
        attention.install()


SCRIPT = """
import sys, torch
q = torch.randn(1, 2, 8, 4)
if sys.argv[1] == "installed":
    import attention
    attention.install()
torch.compile(lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x).sin(), fullgraph=True)(q)
print(torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"])
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_process_without_attention_finds_none_of_our_graphs_on_disk(tmp_path):
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    order = ("installed", "plain", "installed", "plain")
    assert [printed(SCRIPT, how, cwd=tmp_path, **variables).strip() for how in order] == ["0", "0", "1", "1"]
