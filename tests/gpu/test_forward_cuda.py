"""Our CUDA forward as it is called: streams, threads, graphs, another device; random problems: attention.verify."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from attention.call import Tensors
from attention.errors import LaunchError
from attention.kernels.launch import launcher, loaded
from attention.problem import AttentionProblem
from attention.variant import by_path
from attention.verify.builds import Build, builds_of, tuned
from attention.verify.counters import counters_left
from attention.verify.inputs import tensors_of
from attention.verify.oracle import judge
from attention.verify.problems import Case
from tests.elsewhere import on_threads

# Warnings of torch itself are torch's affair.
pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("hopper"), pytest.mark.filterwarnings("default")]

Pair = tuple[torch.Tensor, torch.Tensor]
SLEEP = 200_000_000  # clocks: about a tenth of a second


@pytest.fixture(params=tuned())
def build(request: pytest.FixtureRequest) -> Build:
    """A causal kernel of the campaign's sample, so that its cubin is at hand."""
    return plain(request.param, frozenset({"CAUSAL"}))


def plain(variant: str, asked: frozenset[str]) -> Build:
    return next(each for each in builds_of(variant) if each.bucket == (97, 128) and each.asked == asked)


def case_of(build: Build, index: int = 0, **fields: Any) -> Case:
    problem = AttentionProblem(
        *(2, 8, 2, 777, 777, 128), dtype=build.dtype, device="cuda", causal="CAUSAL" in build.asked, **fields
    )
    return Case(index, 0, build, problem, ("bshd", "bhsd", "sliced"), "normal")


def call(case: Case, tensors: Tensors) -> Pair:
    forward = by_path(case.build.variant).load()
    out, lse = forward(tensors.query, tensors.key, tensors.value, case.problem, case.build.config, tensors.extras)
    return out, lse


def require_right(case: Case, tensors: Tensors, results: Pair) -> None:
    torch.cuda.synchronize(results[0].device)
    assert judge(case, tensors, *results).reason == ""


def make_cold() -> None:
    """As in a new process: nothing is loaded, though its cubin is on disk."""
    torch.cuda.synchronize()
    loaded._function.cache_clear()
    launcher._ready.cache_clear()


def here() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device())


def test_the_same_call_gives_the_same_bits(build: Build) -> None:
    case = case_of(build)
    tensors = tensors_of(case, here())
    first = call(case, tensors)
    require_right(case, tensors, first)
    for _ in range(20):
        again = call(case, tensors)
        assert torch.equal(first[0].view(torch.int16), again[0].view(torch.int16))
        assert torch.equal(first[1].view(torch.int32), again[1].view(torch.int32))


def test_counters_are_zero_after_every_launch(build: Build) -> None:
    case = case_of(build)
    tensors = tensors_of(case, here())
    for _ in range(3):
        call(case, tensors)
        torch.cuda.synchronize()
        assert not counters_left(here())


def test_work_goes_to_the_current_stream(build: Build) -> None:
    """The inputs arrive late on a stream of their own: on any other stream the call would meet zeros."""
    case = case_of(build)
    tensors = tensors_of(case, here())
    late = Tensors(*(torch.zeros_like(each) for each in (tensors.query, tensors.key, tensors.value)), tensors.extras)
    call(case, late)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(SLEEP)
        late.query.copy_(tensors.query)
        late.key.copy_(tensors.key)
        late.value.copy_(tensors.value)
        results = call(case, late)
    side.synchronize()
    require_right(case, tensors, results)


def test_calls_of_many_streams_at_once_do_not_disturb_each_other(build: Build) -> None:
    """Each stream counts its tiles by itself."""
    cases = [case_of(build, index) for index in range(8)]
    inputs = [tensors_of(case, here()) for case in cases]
    streams = [torch.cuda.Stream() for _ in cases]
    torch.cuda.synchronize()
    results = []
    for _ in range(5):
        for case, tensors, stream in zip(cases, inputs, streams, strict=True):
            with torch.cuda.stream(stream):
                results.append((case, tensors, call(case, tensors)))
    torch.cuda.synchronize()
    for case, tensors, result in results:
        require_right(case, tensors, result)
    assert not counters_left(here())


def test_two_threads_may_make_the_first_call(build: Build) -> None:
    case = case_of(build)
    tensors = tensors_of(case, here())
    make_cold()

    def first() -> Pair:
        with torch.cuda.stream(torch.cuda.Stream()):
            return call(case, tensors)

    for result in on_threads(2, first):
        require_right(case, tensors, result)


def test_a_thread_that_never_touched_the_gpu_may_call(build: Build) -> None:
    """A new thread has no current context of the driver's."""
    case = case_of(build)
    tensors = tensors_of(case, here())
    call(case, tensors)
    (results,) = on_threads(1, lambda: call(case, tensors))
    require_right(case, tensors, results)


def test_a_warm_call_is_captured_and_its_replay_follows_the_inputs(build: Build) -> None:
    case, other = case_of(build), case_of(build, 1)
    tensors, following = tensors_of(case, here()), tensors_of(other, here())
    call(case, tensors)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call(case, tensors)
    for given in (tensors, following):
        tensors.query.copy_(given.query)
        tensors.key.copy_(given.key)
        tensors.value.copy_(given.value)
        for each in results:
            each.fill_(torch.nan)
        graph.replay()
        require_right(case, given, results)
    assert not counters_left(here())


def test_a_replay_and_a_call_run_side_by_side(build: Build) -> None:
    """A captured launch counts its tiles in a pair of its own."""
    case, other = case_of(build), case_of(build, 1)
    tensors, beside = tensors_of(case, here()), tensors_of(other, here())
    call(case, tensors)
    torch.cuda.synchronize()
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph):
        captured = call(case, tensors)
    eager = []
    for _ in range(10):
        graph.replay()
        with torch.cuda.stream(side):
            eager.append(call(other, beside))
    torch.cuda.synchronize()
    require_right(case, tensors, captured)
    for result in eager:
        require_right(other, beside, result)


def test_a_cold_call_says_that_it_cannot_be_captured(build: Build) -> None:
    case = case_of(build)
    tensors = tensors_of(case, here())
    require_right(case, tensors, call(case, tensors))
    make_cold()
    graph = torch.cuda.CUDAGraph()
    with (
        pytest.raises(LaunchError, match=r"not loaded on .* call it once with these shapes before the capture\."),
        torch.cuda.graph(graph),
    ):
        call(case, tensors)
    require_right(case, tensors, call(case, tensors))


HELD = [
    each
    for variant in tuned()
    for each in builds_of(variant)
    if ("q_in_registers", 1) in each.config.values and not each.asked and each.dtype == "bfloat16"
]


@pytest.mark.parametrize("build", HELD, ids=lambda build: f"{build.bucket[1]} {build.config}")
def test_rows_of_q_are_read_before_those_of_the_next_tile_come(build: Build) -> None:
    """With one key, and several tiles of rows a block, that was wrong in 37 of 40 runs (H200)."""
    problem = AttentionProblem(1, 24, 3, 3013, 1, build.bucket[1], dtype=build.dtype, device="cuda", scale=0.3)
    case = Case(0, 0, build, problem, ("bshd", "bhsd", "bhsd"), "normal")
    tensors = tensors_of(case, here())
    for _ in range(20):
        require_right(case, tensors, call(case, tensors))


@pytest.mark.parametrize("variant", tuned())
def test_another_device_than_the_current_one_serves_its_tensors(variant: str) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    case = case_of(plain(variant, frozenset({"CAUSAL"})))
    tensors = tensors_of(case, torch.device("cuda", 1))
    assert torch.cuda.current_device() == 0
    results = call(case, tensors)
    assert results[0].device.index == 1 and torch.cuda.current_device() == 0
    require_right(case, tensors, results)


@pytest.mark.parametrize("variant", tuned())
def test_nothing_is_remembered_of_memory_that_another_tensor_takes(variant: str) -> None:
    """The same address comes back with other shapes and strides: what is cached is cached by all of them."""
    build = plain(variant, frozenset())
    memory = torch.randn(2 * 8 * 600 * 128, device="cuda").to(getattr(torch, build.dtype))
    for batch, heads, rows, swapped in ((2, 8, 600, False), (1, 8, 600, True), (2, 4, 333, False), (2, 4, 333, True)):
        count = batch * heads * rows * 128
        shape = (batch, rows, heads, 128) if swapped else (batch, heads, rows, 128)
        tensor = memory[:count].view(shape)
        tensor = tensor.transpose(1, 2) if swapped else tensor
        problem = AttentionProblem(*(batch, heads, heads, rows, rows, 128), dtype=build.dtype, device="cuda")
        case = replace(case_of(build), problem=problem)
        tensors = replace(tensors_of(case, here()), query=tensor, key=tensor, value=tensor)
        require_right(case, tensors, call(case, tensors))
