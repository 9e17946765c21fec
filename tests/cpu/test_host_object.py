"""Machine code on disk: who finds it runs it without Numba, and who does not is served by torch at once."""

import ctypes
import warnings

import pytest
import torch
from numba import types

from attention import FallbackWarning, flash_attn_func, sdpa
from attention.choose.calibration import Duel
from attention.frontends import sdpa as frontend
from attention.kernels.host.forward.tiled_online_softmax import machine_code
from attention.op import plan
from attention.problem import AttentionProblem
from attention.variant import by_path
from microbench import paths
from microbench.compile import host_object
from tests.elsewhere import printed

OURS = "host/forward/tiled_online_softmax"
WINS = tuple(
    Duel(f"{OURS} float32 many queries", AttentionProblem(1, 4, 4, length, length, 64), 9.0)
    for length in (128, 256, 512)
)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    machine_code.entry.cache_clear()
    yield tmp_path
    machine_code.entry.cache_clear()


@pytest.fixture
def winning(host_machine, monkeypatch):
    """A machine whose timings are for our kernel, and three tensors that it would serve."""
    monkeypatch.setattr(plan.learned, "duels_of_machine", lambda _profile: WINS)
    return torch.randn(3, 1, 4, 256, 64).unbind()


@pytest.fixture
def no_compiler(monkeypatch):
    def compiled(*_):
        raise AssertionError("a call waited for a compiler")

    monkeypatch.setattr(host_object, "compiled", compiled)


def squared(numbers, count, times):
    for index in range(count):
        numbers[index] = numbers[index] * numbers[index] * times


def squares(symbol, code):
    native = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_double)
    unread, numbers = (ctypes.c_void_p * 2)(), (ctypes.c_double * 3)(1, 2, 3)
    place = ctypes.addressof(unread)
    assert native(host_object.load(symbol, code))(place, place + 8, ctypes.addressof(numbers), 3, 0.5) == 0
    return list(numbers)


def test_code_survives_the_disk_and_a_torn_file_counts_as_absent(empty_cache):
    made = host_object.compiled(squared, types.void(types.CPointer(types.float64), types.intp, types.float64))
    assert not host_object.is_kept("one") and host_object.read("one") is None
    host_object.keep("one", *made)
    assert host_object.is_kept("one") and host_object.read("one") == made
    assert squares(*host_object.read("one")) == [0.5, 2.0, 4.5]
    (file,) = (empty_cache / "host").iterdir()
    assert file.parent.stat().st_mode & 0o077 == 0
    file.write_bytes(file.read_bytes()[:-9])
    assert host_object.read("one") is None


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path / "file"))
    host_object.keep("one", "symbol", b"code")
    assert host_object.read("one") is None


def test_where_the_kernel_is_not_compiled_torch_serves_at_once_and_says_so(winning, empty_cache, no_compiler):
    with pytest.warns(FallbackWarning, match="not compiled on this machine yet.*smscope bench-attention.*torch serves"):
        out = sdpa(*winning)
    torch.testing.assert_close(out, frontend.torch_sdpa(*winning))
    with pytest.warns(FallbackWarning, match="not compiled") if not plan._announced else warnings.catch_warnings():
        q, k, v = (tensor.transpose(1, 2) for tensor in winning)
        assert flash_attn_func(q, k, v, window_size=(8, 8)).shape == q.shape


def test_where_it_is_compiled_it_serves(winning, monkeypatch):
    met = []
    real = machine_code.entry
    monkeypatch.setattr(machine_code, "entry", lambda bits: met.append(bits) or real(bits))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(sdpa(*winning), frontend.torch_sdpa(*winning), rtol=0, atol=5e-6)
    assert met == [32]


def test_who_asks_for_our_kernel_alone_waits_for_the_compiler(winning, empty_cache, no_compiler):
    assert not by_path(OURS).is_ready()
    with pytest.raises(AssertionError, match="waited for a compiler"):
        sdpa(*winning, only="smscope")


def test_a_first_call_imports_no_compiler():
    script = (
        "import sys, torch, attention\n"
        "q = torch.randn(1, 2, 64, 64)\n"
        "attention.sdpa(q, q, q, only='smscope')\n"
        "print(sorted({'numba', 'pandas', 'scipy', 'torch._dynamo'} & set(sys.modules)))\n"
    )
    assert printed(script) == "[]\n"
