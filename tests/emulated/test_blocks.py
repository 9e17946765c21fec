"""Blocks of one grid: in what order they run, what they may share in global memory, and what is reported as a race."""

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.compile import compile_source
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.errors import DeviceError
from tests.emulated.small import run_small

HEADERS = "elect grid memory multicast"
BLOCKS = 6


def launch(body: str, mode: Mode = "lazy", seed: int = 1, *, words: int = 1024) -> NDArray[np.int32]:
    """Run `body` as a kernel of six blocks and `int* out`, which starts at zero."""
    out, device = np.zeros(words, np.int32), EmulatedDevice(mode, seed)
    run_small(HEADERS, f"const int b = blockIdx.x;\n{body}", out, device=device, grid=(BLOCKS,), threads=32)
    return out


# Reported in every mode, by the same words.
RACES = {
    "a sum by load and store": ("if (t == 0) out[0] += b;", "race between blocks: read .* after the write by block"),
    "one flag that all blocks set": ("if (t == 0) out[0] = 1;", "race between blocks: write .* after the write by"),
    "a neighbour's result": ("out[32 * b + t] = out[32 * (b ^ 1) + t];", "race between blocks: (read|write) "),
    "bytes of one word": (
        "reinterpret_cast<short*>(out)[b + t % 2] = t;",
        "race: write .* not ordered after the write by thread|race between blocks: write",
    ),
    "a plain read of what others add to": (
        "if (t == 0) { atomicAdd(out, 1); out[1 + b] = out[0]; }",
        "race between blocks: (read .* after the atomic update|atomic update .* after the read) by block",
    ),
    "the wrappers' stores": (
        "ptx::store4(reinterpret_cast<ptx::u64>(out), ptx::vec4{});",
        "race: write .* thread|race between blocks: write",
    ),
    "a bulk copy of what a neighbour writes": (
        "if (b == 5) out[t] = t;\n"
        "if (t || b) return;\n"
        "const unsigned at = ptx::shared_base(), bar = at + 512;\n"
        "ptx::mbarrier_init(bar, 1); ptx::fence_mbarrier_init(); ptx::mbarrier_arrive_expect(bar, 128);\n"
        "ptx::bulk_load(at, out, 128, bar); ptx::mbarrier_wait(bar, 0);",
        "race between blocks: (read|write) ",
    ),
    "threads of one block without a barrier": (
        "out[32 * b + t] = t; out[512 + 32 * b + t] = out[32 * b + (t + 1) % 32];",
        r"race: (read|write) \(global access at byte .* is not ordered after the (read|write) by thread",
    ),
    "a result that is published without a fence": (
        "if (t) return;\n"
        "out[1 + b] = b; if (atomicAdd(out, 1) < 5) return;\n"
        "int sum = 0; for (int i = 0; i < 6; ++i) sum += out[1 + i]; out[32] = sum;",
        "race between blocks: read .* after the write by block",
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", RACES)
def test_a_race_in_global_memory_is_reported(what: str, mode: Mode) -> None:
    body, report = RACES[what]
    with pytest.raises(DeviceError, match=report):
        launch(body, mode)


ORDERED = {
    "atomics": ("atomicAdd(out + t, b + 1);", np.full(32, 21)),
    "halves of one word by one thread each": (
        "reinterpret_cast<short*>(out)[2 * (32 * b + t) + 1] = 1; reinterpret_cast<short*>(out)[2 * (32 * b + t)] = 1;",
        np.full(192, 0x10001),
    ),
    "neighbouring bytes of two blocks": (
        "if (t < 2) reinterpret_cast<char*>(out)[2 * b + t] = 1;",
        np.full(3, 0x01010101),
    ),
    "the last block to finish adds up": (
        "out[64 + 32 * b + t] = b;\n"
        "__threadfence(); __syncwarp();\n"
        "int before = 0; if (t == 0) before = atomicAdd(out + 1, 1);\n"
        "if (__shfl_sync(~0u, before, 0) < 5) return;\n"
        "__threadfence();\n"
        "if (t == 0) for (int i = 0; i < 6 * 32; ++i) out[0] += out[64 + i];",
        np.array([15 * 32]),
    ),
    "the last block puts the counters back": (
        "if (t) return;\natomicAdd(out, 1); if (atomicAdd(out + 1, 1) == 5) { out[0] = -1; out[1] = -1; }",
        np.array([-1, -1]),
    ),
    "a barrier between threads": (
        "out[512 + 32 * b + t] = t; __syncthreads(); out[32 * b + t] = out[512 + 32 * b + (t + 1) % 32];",
        np.tile((np.arange(32) + 1) % 32, BLOCKS),
    ),
    "one kernel after another": (
        "ptx::grid_wait(); atomicAdd(out, 1); ptx::grid_launch_dependents();",
        np.array([192]),
    ),
    "one elected lane": ("if (ptx::elect_one()) out[b] = t + 1;", np.ones(BLOCKS)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", ORDERED)
def test_what_is_ordered_is_not_reported(what: str, mode: Mode) -> None:
    body, expected = ORDERED[what]
    for seed in range(4 if mode == "random" else 1):
        np.testing.assert_array_equal(launch(body, mode, seed)[: len(expected)], expected)


def order(mode: Mode, seed: int = 1) -> list[int]:
    """The blocks in the order in which they come to a counter."""
    return launch("if (t == 0) out[1 + atomicAdd(out, 1)] = b;", mode, seed)[1 : BLOCKS + 1].tolist()


def test_every_mode_has_its_order_of_blocks() -> None:
    assert order("eager") == list(range(BLOCKS)) and order("lazy") == list(reversed(range(BLOCKS)))
    orders = {tuple(order("random", seed)) for seed in range(8)}
    assert len(orders) > 4 and all(sorted(each) == list(range(BLOCKS)) for each in orders)


WAITS = (
    "if (t) return;\nvolatile int* flag = out; if (b == {first}) *flag = 1; else while (!*flag) {{}}\nout[1 + b] = 1;"
)


def test_a_block_that_waits_for_one_that_has_not_run_is_reported() -> None:
    assert launch(WAITS.format(first=0), "eager")[1 : 1 + BLOCKS].all()
    for mode, first in (("eager", 5), ("lazy", 0)):
        with pytest.raises(DeviceError, match="livelock: polled without end"):
            launch(WAITS.format(first=first), mode)


def test_volatile_reads_of_many_words_are_no_livelock() -> None:
    body = "for (int i = 0; i < 4000; ++i) *out += in[i];"
    source = f'extern "C" __global__ void sum(const volatile char* in, int* out) {{ {body} }}'
    out = np.zeros(1, np.int32)
    EmulatedDevice().load(source, "sum.cu", kernel="sum")((1,), (1,), (np.ones(4000, np.int8), out))
    assert out[0] == 4000


def test_the_random_mode_interleaves_blocks() -> None:
    body = "for (int i = 0; i < 8; ++i) { if (t == 0) out[1 + atomicAdd(out, 1)] = b; __syncwarp(); }"
    assert any((np.diff(launch(body, "random", seed)[1:49]) != 0).sum() > 8 for seed in range(8))


def test_a_dependent_grid_compiles_to_its_instructions() -> None:
    source = (
        '#include "ptx/grid.cuh"\nextern "C" __global__ void k() { ptx::grid_wait(); ptx::grid_launch_dependents(); }'
    )
    for arch in ("sm90a", "sm100a"):
        opcodes = {
            instruction.opcode for instruction in compile_source(source, "k.cu", arch, kernel="k").instructions()
        }
        assert {"ACQBULK", "PREEXIT"} <= opcodes, sorted(opcodes)
