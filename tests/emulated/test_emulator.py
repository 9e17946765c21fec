"""What the emulator reports, and how it is launched: each rule by the smallest kernel that breaks it."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from microbench.emulator import EmulatedDevice, TensorMap
from microbench.errors import BuildError, DeviceError, InputError
from tests.emulated.small import run_small

launch = partial(run_small, "barrier clock cp_async mbarrier memory setmaxnreg tma wgmma")


BASE = "const unsigned at = ptx::shared_base();\n"

REPORTS = {
    "a thread that misses the barrier": (
        "if (t != 5) __syncthreads();",
        r"deadlock: warp 0 at bar.sync x31; warp 0 finished x1; warp 1 at bar.sync x32",
    ),
    "two barriers that wait for each other": (
        "ptx::barrier_sync(1 + t / 32, 64);",
        r"deadlock: warp 0 at bar.sync 0x1 x32; warp 1 at bar.sync 0x2 x32",
    ),
    "a barrier that two counts disagree on": ("ptx::barrier_sync(1, t < 32 ? 32 : 64);", None),
    "a barrier of a part of a warp": ("ptx::barrier_sync(1, 33);", "a barrier counts whole warps, not 33"),
    "a barrier that no block has": ("ptx::barrier_sync(16, 64);", "a block has 0 to 15"),
    "a loop that nothing ends": (
        BASE + "if (!t) ptx::mbarrier_init(at, 1); __syncthreads(); while (!ptx::mbarrier_test(at, 0)) {}",
        "livelock",
    ),
    "lanes in two collectives": (
        "out[t] = t % 2 ? __shfl_xor_sync(~0u, t, 1) : __shfl_up_sync(~0u, t, 1);",
        "mismatched collective: this lane is in shfl.bfly, others of its warp in shfl.up",
    ),
    "lanes that wait for each other under two masks": (
        "out[t] = t % 2 ? __shfl_sync(~0u, t, 0) : __shfl_sync(~0u >> 1, t, 0);",
        "mismatched collective: shfl.idx with mask 0xffffffff where others are in shfl.idx with mask 0x7fffffff",
    ),
    "a mask without the caller": ("__syncwarp(1);", "does not name the calling lane"),
    "neighbours who share without a barrier": (
        BASE + "ptx::store_shared(at + 4 * t, t); out[t] = ptx::load_shared(at + 4 * (t ^ 1));",
        r"race: (ld|st).shared by thread \d+ at shared .* is not ordered after the (read|write) by thread \d+",
    ),
    "a shuffle taken for a barrier": (
        BASE
        + "ptx::store_shared(at + 4 * t, t); __shfl_xor_sync(~0u, t, 1); out[t] = ptx::load_shared(at + 4 * (t ^ 1));",
        "race: ld.shared",
    ),
    "shared memory past its end": (BASE + "ptx::store_shared(at + 1024, 0);", "shared offset 1024 of 1024"),
    "shared memory before its start": ("ptx::store_shared(0, 0);", "shared offset -1024 of 1024"),
    "a misaligned vector": (BASE + "ptx::load_shared4(at + 8);", "is not a multiple of 16"),
    "a plain store past a buffer": ("out[64 + t] = 1;", "global access at byte 256, in a buffer of 256 bytes"),
    "a plain load before a buffer": ("out[t] = out[-1025];", "global access at byte -4100, in a buffer"),
    "a wrapped load of nothing": ("ptx::load4(64);", "global address 0x40 belongs to no buffer"),
    "arrays that no stack holds": (
        "volatile float big[100000]; for (int i = 0; i < 100000; ++i) big[i] = i; out[t] = big[t];",
        "the stack of thread 0 overflowed",
    ),
    "data that overwrites an mbarrier": (
        BASE + "if (!t) { ptx::mbarrier_init(at, 1); ptx::store_shared(at + 4, 0); }",
        "touches an mbarrier",
    ),
    "too many arrivals": (
        BASE + "if (!t) { ptx::mbarrier_init(at, 1); ptx::mbarrier_expect(at, 16); ptx::mbarrier_arrive(at);"
        " ptx::mbarrier_arrive(at); }",
        "more arrivals than the 1 of its phase",
    ),
    "an mbarrier made twice": (
        BASE + "if (!t) { ptx::mbarrier_init(at, 1); ptx::mbarrier_init(at, 1); }",
        "holds an mbarrier already",
    ),
    "registers of one warp alone": (
        "if (t < 32) ptx::setmaxnreg_increase<64>(); else ptx::setmaxnreg_increase<72>();",
        "warps of one warpgroup ask for",
    ),
    "a register count in between": ("ptx::setmaxnreg_increase<100>();", "multiple of 8 from 24 to 256"),
    "a trap": ("if (t == 3) __trap();", r"__trap\(\) was reached \[block 0,0,0 thread 3\]"),
    "a cp.async read at once by its own thread": (
        BASE + "ptx::cp_async<4>(at + 4 * t, out + t); ptx::cp_async_commit(); out[t] = ptx::load_shared(at + 4 * t);",
        "a copy that has not been waited for",
    ),
    "an odd bulk copy": (
        BASE + "if (!t) { ptx::mbarrier_init(at, 1); ptx::bulk_load(at + 16, out, 24, at); }",
        "a multiple of 16 is needed",
    ),
}


@pytest.mark.parametrize("what", REPORTS)
def test_a_broken_rule_is_reported(what: str) -> None:
    body, report = REPORTS[what]
    if report is None:
        report = "barrier 1 expects 64 threads, and this thread says 32|barrier 1 expects 32"
        body = body.replace("t < 32", "t % 2")
    with pytest.raises(DeviceError, match=report):
        launch(body)


def test_a_failed_launch_leaves_the_machine_usable() -> None:
    for _ in range(2):
        with pytest.raises(DeviceError, match="out of bounds"):
            launch("out[1000000] = 1;")
        out = np.zeros(64, np.int32)
        launch("out[t] = t;", out)
        np.testing.assert_array_equal(out, np.arange(64))


def test_warps_of_a_ring_hand_over_by_named_barriers() -> None:
    out = np.zeros(64, np.int32)
    body = BASE + (
        "if (t < 32) { ptx::store_shared(at + 4 * t, t * t); ptx::barrier_arrive(3, 64); }\n"
        "else { ptx::barrier_sync(3, 64); out[t] = ptx::load_shared(at + 4 * (t - 32)); }"
    )
    launch(body, out)
    np.testing.assert_array_equal(out[32:], np.arange(32) ** 2)


def test_a_shuffle_moves_64_bits() -> None:
    out = np.zeros((2, 64), np.int32)
    body = (
        "const unsigned long long both = __shfl_xor_sync(~0u, (t + 1ull) << 32 | t, 5);"
        "out[t] = static_cast<int>(both); out[64 + t] = static_cast<int>(both >> 32);"
    )
    launch(body, out)
    np.testing.assert_array_equal(out, [np.arange(64) ^ 5, (np.arange(64) ^ 5) + 1])


def test_parts_of_a_warp_meet_apart_and_then_together() -> None:
    out = np.zeros(64, np.int32)
    launch(
        "int sum = t % 32 < 8 ? __shfl_sync(0xFFu, t, 7) : __shfl_sync(~0xFFu, t, 9); __syncwarp();"
        " out[t] = __shfl_sync(~0u, sum, 31 - t % 32);",
        out,
    )
    np.testing.assert_array_equal(out[:32], np.repeat([9, 7], [24, 8]))


def test_fresh_memory_is_not_a_number() -> None:
    out = np.zeros(64, np.int32)
    launch("out[t] = ptx::load_shared(ptx::shared_base() + 4 * t);", out)
    assert np.isnan(out.view(np.float32)).all()
    assert np.isnan(EmulatedDevice().empty((3, 5), np.float16)).all()


def test_shuffles_and_votes_are_those_of_the_manual() -> None:
    out = np.zeros((6, 64), np.int32)
    body = (
        "out[t] = __shfl_sync(~0u, t, 3, 8); out[64 + t] = __shfl_up_sync(~0u, t, 2, 16);\n"
        "out[128 + t] = __shfl_down_sync(~0u, t, 5); out[192 + t] = __shfl_xor_sync(~0u, t, 9);\n"
        "out[256 + t] = __ballot_sync(~0u, t % 3 == 0); out[320 + t] = __all_sync(~0u, t < 40);"
    )
    launch(body, out)
    t = np.arange(64)
    np.testing.assert_array_equal(out[0], t // 8 * 8 + 3)
    np.testing.assert_array_equal(out[1], np.where(t % 16 < 2, t, t - 2))
    np.testing.assert_array_equal(out[2], np.where(t % 32 + 5 > 31, t, t + 5))
    np.testing.assert_array_equal(out[3], t ^ 9)
    votes = [sum(1 << lane for lane in range(32) if (lane + first) % 3 == 0) for first in (0, 32)]
    np.testing.assert_array_equal(out[4].view(np.uint32), np.repeat(votes, 32))
    np.testing.assert_array_equal(out[5], np.repeat([1, 0], 32))


@pytest.mark.parametrize(
    ("args", "report"),
    [
        ((np.zeros(64, np.int32), 1, 2), "takes 2 arguments, and 3 were given"),
        ((np.zeros(64, np.int32), np.float64(1)), "argument 1 is of 8 bytes, and the kernel takes 4"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args: tuple[Any, ...], report: str) -> None:
    with pytest.raises(DeviceError, match=report):
        launch("out[t] = given;", *args)


def test_the_launch_itself_is_checked() -> None:
    with pytest.raises(DeviceError, match="1 to 1024 threads"):
        launch("", threads=2048)
    with pytest.raises(DeviceError, match="227 KiB"):
        launch("", smem=1 << 20)
    with pytest.raises(InputError, match="not a str"):
        launch("", "text")
    with pytest.raises(InputError, match="one of eager, lazy, random"):
        EmulatedDevice("late")  # type: ignore[arg-type]


def test_a_mistake_in_the_source_is_shown_with_its_line() -> None:
    with pytest.raises(BuildError, match=r"small\.cu.*no_such_name"):
        launch("out[t] = no_such_name;")


def test_a_function_that_only_the_c_library_declares_is_named() -> None:
    """glibc declares __log1pf and does not export it; of another library the compiler refuses it."""
    with pytest.raises(BuildError, match="__log1pf"):
        launch("out[t] = (int)__log1pf((float)t);")


def test_cudas_fast_functions_are_there() -> None:
    out = np.zeros(1, np.int32)
    launch("if (!t) out[0] = (int)(__log2f(8.f) + __expf(0.f) + __powf(2.f, 3.f) + __cosf(0.f) + .5f);", out)
    np.testing.assert_array_equal(out, [3 + 1 + 8 + 1])


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ('float y; asm volatile("add.rn.f32 %0, %1, %1;" : "=f"(y) : "f"(1.f)); out[t] = y;', "call a wrapper"),
        ('int y; asm volatile("add.s32 %0, %1, %1;" : "=r"(y) : "r"(t)); out[t] = y;', "call a wrapper"),
        ("__shared__ int tile[64]; tile[t] = t; out[t] = tile[t];", r"begins at ptx::shared_base\(\)"),
        ("extern __shared__ int tile[]; tile[t] = t; out[t] = tile[t];", r"begins at ptx::shared_base\(\)"),
    ],
)
def test_cuda_that_has_no_second_body_is_named_with_its_cure(body: str, hint: str) -> None:
    with pytest.raises(BuildError, match=hint):
        launch(body)


# Lane 0 expects what `expected` says, and one bulk copy of 128 bytes lands.
@pytest.mark.parametrize(
    ("arrives", "progress"),
    [
        ("ptx::mbarrier_arrive(at);", "1 of 1 arrivals, 128 of 0 bytes"),
        ("ptx::mbarrier_arrive_expect(at, 64);", "1 of 1 arrivals, 128 of 64 bytes"),
        ("ptx::mbarrier_arrive_expect(at, 256);", "1 of 1 arrivals, 128 of 256 bytes"),
        ("ptx::mbarrier_expect(at, 128);", "0 of 1 arrivals, 128 of 128 bytes"),
    ],
)
def test_a_deadlock_says_what_an_mbarrier_lacks(arrives: str, progress: str) -> None:
    body = BASE + (
        "if (!t) { ptx::mbarrier_init(at, 1); ptx::fence_mbarrier_init(); ptx::bulk_load(at + 128, out, 128, at);"
        f" {arrives} }}\n__syncthreads();\nptx::mbarrier_wait(at, 0);"
    )
    with pytest.raises(DeviceError, match=rf"deadlock: warp 0 at mbarrier 0x\w+ \({progress}\) x32; warp 1 at"):
        launch(body, device=EmulatedDevice("eager"))


def test_an_argument_in_the_wrong_form_is_named_with_its_cure() -> None:
    device = EmulatedDevice()
    kernel = device.load('extern "C" __global__ void nothing(int*) {}', "nothing.cu", kernel="nothing")
    out = device.full(64, 0, np.int32)
    for name, call in (("grid", (1, (32,))), ("block", ((1,), 32))):
        with pytest.raises(InputError, match=rf"{name} is \d+; write it as a tuple .* such as \(\d+,\)"):
            kernel(*call, (out,))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"pass tensor_map\.emulated\(\)"):
        kernel((1,), (32,), (TensorMap(out, (16,), "u32"),))


def test_clocks_go_forward_and_the_sm_is_the_only_one() -> None:
    out = np.zeros(4, np.int32)
    body = (
        "const long long start = ptx::clock64(); const unsigned long long begin = ptx::globaltimer();\n"
        "__syncthreads();\n"
        "if (!t) { out[0] = ptx::clock64() > start; out[1] = ptx::globaltimer() >= begin; out[2] = ptx::smid(); }"
    )
    launch(body, out)
    np.testing.assert_array_equal(out[:3], [1, 1, 0])
