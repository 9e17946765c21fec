"""Value dims that no launch holds, on a GPU: two launches, called as users call them, new and known, and captured."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import torch

from attention import flash_attn_func, flash_attn_varlen_func, sdpa
from attention.frontends import kept
from attention.frontends.flash_attn import kept as kept_of_flash
from attention.problem import AttentionProblem
from attention.variant import by_path
from attention.verify.builds import Build
from attention.verify.counters import counters_left
from attention.verify.inputs import tensors_of
from attention.verify.oracle import judge
from attention.verify.problems import Case
from microbench.machine.arch import by_name
from tests.tensors import assert_same_gradients, random

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

PATHS = (
    "sm80/forward/software_pipelined",
    "sm80/forward/split_keys",
    "sm90a/forward/split_keys",
    "sm90a/forward/warp_specialised",
)
FEATURES: dict[str, dict[str, Any]] = {
    "full": {},
    "causal": {"causal": True},
    "a window, ALiBi and softcap": {"window": (100, 40), "alibi": True, "softcap": 5.0},
    "a mask": {"mask": "bool"},
    "sinks, packed": {"sinks": True, "varlen": True, "tokens_q": 520, "tokens_kv": 900, "alignment": "bottom_right"},
    "ranges": {"ranges": True},
}
LENGTHS = ((300, 700), (220, 200))
VALUE_DIMS = 512, 384, 272
CLOSE: dict[str, float] = {"rtol": 2e-2, "atol": 2e-2}
OURS: dict[str, Any] = {"only": "smscope", "strict": True}
on_gpu = partial(random, dtype=torch.bfloat16, device="cuda")
Call = Callable[..., torch.Tensor]


def exact(*tensors: torch.Tensor, causal: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Of (B, H, S, D), in float64."""
    query, key, value = (each.double() for each in tensors)
    scores = query @ key.mT * query.shape[-1] ** -0.5
    if causal:
        scores = scores.masked_fill(scores.new_ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return scores.softmax(-1) @ value, scores.logsumexp(-1)


def by_sdpa(*tensors: torch.Tensor, causal: bool, **options: Any) -> torch.Tensor:
    return sdpa(*tensors, is_causal=causal, **OURS, **options)


def by_flash_attn_func(*tensors: torch.Tensor, causal: bool) -> torch.Tensor:
    """Of (B, H, S, D) as well: views of what a caller holds as (B, S, H, D)."""
    found: torch.Tensor = flash_attn_func(*(each.transpose(1, 2) for each in tensors), causal=causal, **OURS)
    return found.transpose(1, 2)


each_function = pytest.mark.parametrize("call", [by_sdpa, by_flash_attn_func])
each_value_dim = pytest.mark.parametrize("value_dim", VALUE_DIMS)


def drawn(value_dim: int, grad: bool = False) -> list[torch.Tensor]:
    return on_gpu(*[(2, 8, 300, width) for width in (64, 64, value_dim)], grad=grad)


@pytest.fixture(autouse=True)
def unknown() -> None:
    for known in (kept.KNOWN, kept_of_flash.KNOWN):
        known.forget()


@pytest.mark.usefixtures("hopper")
@each_value_dim
@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("path", PATHS)
def test_both_halves_agree_with_the_oracle(path: str, name: str, value_dim: int) -> None:
    problem = AttentionProblem(2, 8, 2, 300, 700, 64, value_dim, dtype="bfloat16", device="cuda", **FEATURES[name])
    variant, arch = by_path(path), by_name("sm90a")
    assert variant.illegal is not None
    configs = [] if variant.refusal(problem, arch) else variant.configs()
    config = next((each for each in configs if variant.illegal(problem, each, arch) is None), None)
    if config is None:
        pytest.skip("it serves no such problem, whatever the value dim is, or half of these columns alone")
    build = Build(path, (64, 64), problem.dtype, config, frozenset())
    case = Case(0, 0, build, problem, ("bshd", "bhsd", "sliced"), "normal", LENGTHS if problem.varlen else ())
    device = torch.device("cuda", torch.cuda.current_device())
    tensors = tensors_of(case, device)
    run = variant.load()
    for _ in range(2):
        found = run(tensors.query, tensors.key, tensors.value, problem, config, tensors.extras)
        assert judge(case, tensors, *found).reason == ""
    assert not counters_left(device)


@each_function
@each_value_dim
@pytest.mark.parametrize("causal", [False, True])
def test_new_and_known_calls_are_right_without_a_fallback(call: Call, value_dim: int, causal: bool) -> None:
    tensors = drawn(value_dim)
    wanted, _ = exact(*tensors, causal=causal)
    for _ in range(3):
        torch.testing.assert_close(call(*tensors, causal=causal).double(), wanted, **CLOSE)


@each_value_dim
def test_lse_is_that_of_all_columns(value_dim: int) -> None:
    tensors = drawn(value_dim)
    out, lse = exact(*tensors, causal=True)
    for _ in range(2):
        turned = (each.transpose(1, 2) for each in tensors)
        found, of_found = flash_attn_func(*turned, causal=True, return_lse=True, **OURS)
        torch.testing.assert_close(found.transpose(1, 2).double(), out, **CLOSE)
        torch.testing.assert_close(of_found.double(), lse, rtol=1e-3, atol=1e-3)


@each_value_dim
def test_packed_sequences_are_right(value_dim: int) -> None:
    starts = torch.tensor((0, 170, 300), device="cuda", dtype=torch.int32)
    tensors = on_gpu(*[(300, 8, width) for width in (64, 64, value_dim)])
    pieces = (exact(*(each[rows].transpose(0, 1)[None] for each in tensors), causal=True)[0] for rows in _rows(starts))
    wanted = torch.cat([each[0].transpose(0, 1) for each in pieces])
    for _ in range(2):
        found = flash_attn_varlen_func(*tensors, starts, starts, 170, 170, causal=True, **OURS)
        torch.testing.assert_close(found.double(), wanted, **CLOSE)


def _rows(starts: torch.Tensor) -> list[slice]:
    return [slice(begin, end) for begin, end in pairwise(starts.tolist())]


@each_function
@each_value_dim
def test_a_captured_call_follows_its_inputs(call: Call, value_dim: int) -> None:
    tensors = drawn(value_dim)
    call(*tensors, causal=True)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call(*tensors, causal=True)
    for _ in range(3):
        for each in tensors:
            each.normal_()
        found.fill_(torch.nan)
        graph.replay()
        torch.testing.assert_close(found.double(), exact(*tensors, causal=True)[0], **CLOSE)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_those_of_both_halves(causal: bool) -> None:
    tensors = drawn(512, grad=True)
    for _ in range(2):
        found = sdpa(*tensors, is_causal=causal, only="smscope")
        assert_same_gradients(found.double(), exact(*tensors, causal=causal)[0], tensors, rtol=5e-2, atol=1e-1)


def test_a_compiled_call_is_one_graph_and_gives_the_same() -> None:
    tensors = drawn(512)
    compiled = torch.compile(partial(by_sdpa, causal=True), fullgraph=True)
    torch.testing.assert_close(compiled(*tensors).double(), exact(*tensors, causal=True)[0], **CLOSE)
