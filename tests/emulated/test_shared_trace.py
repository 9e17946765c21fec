"""Bank conflicts, counted by the emulator: as a GPU measured them, as NumPy counts them, and in our kernels' loads."""

from dataclasses import replace

import numpy as np
import pytest

from attention.kernels.sm75.forward.register_staged.arguments import shape_of as turing_shape_of
from attention.kernels.sm80.forward.software_pipelined.arguments import shape_of
from microbench.device.emulated import EmulatedGpu
from microbench.emulator import EmulatedDevice
from microbench.emulator.shared_trace import traced
from microbench.point import Point
from microbench.probes import named
from microbench.results import record
from microbench.verify.executed import execute_point
from tests.emulated import forward_sm70, forward_sm75, forward_sm80
from tests.emulated.forward_case import Array, ForwardCase, inputs_of, judge
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import inlined

SOURCE = """#include "ptx/memory.cuh"
extern "C" __global__ void touch(const int* at, int bytes, int store) {
  const int mine = at[threadIdx.x];
  if (mine < 0) return;
  const unsigned from = ptx::shared_base() + mine;
  if (store && bytes == 4) ptx::store_shared(from, 1);
  if (store && bytes == 16) ptx::store_shared4(from, {1, 2, 3, 4});
  if (!store && bytes == 4) ptx::load_shared(from);
  if (!store && bytes == 8) ptx::load_shared2(from);
  if (!store && bytes == 16) ptx::load_shared4(from);
}"""
SIZE = 4096


def wavefronts(addresses: Array, size: int) -> int:
    """Of one access: for each phase of 128 bytes the most different words that one bank has to give."""
    count = 0
    for phase in addresses.reshape(size // 4, -1):
        words = {int(at) // 4 + word for at in phase if at >= 0 for word in range(size // 4)}
        banks = np.bincount([word % 32 for word in words], minlength=1)
        count += int(banks.max()) if words else 0
    return count


@pytest.mark.parametrize(("size", "store"), [(4, 0), (8, 0), (16, 0), (4, 1), (16, 1)])
def test_wavefronts_are_those_that_numpy_counts(size: int, store: int) -> None:
    device = EmulatedDevice(races=False)
    kernel, rng = device.load(SOURCE, "touch.cu", kernel="touch"), np.random.default_rng(size + store)
    for reach in (128, 512, SIZE):
        at = rng.integers(0, reach // size, 64) * size
        at[rng.random(64) < 0.2] = -1  # lanes that take no part
        with traced() as trace:
            kernel((1,), (64,), (at.astype(np.int32), size, store), shared_mem=SIZE)
        found = sorted((int(row["lanes"]), int(row["wavefronts"]), int(row["lowest"])) for row in trace.rows)
        warps = [warp for warp in at.reshape(2, 32) if (warp >= 0).any()]
        assert found == sorted((int((w >= 0).sum()), wavefronts(w, size), int(w[w >= 0].min())) for w in warps)
        assert len(trace.accesses(load=not store)) == len(warps) and not len(trace.accesses(load=bool(store)))


def test_nothing_is_traced_outside() -> None:
    device = EmulatedDevice(races=False)
    with traced() as trace:
        pass
    device.load(SOURCE, "touch.cu", kernel="touch")((1,), (32,), (np.zeros(32, np.int32), 4, 0), shared_mem=SIZE)
    assert not len(trace.rows)


@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("ways", [1, 2, 8])
def test_conflicts_are_those_that_an_h200_took_time_for(width: int, ways: int) -> None:
    point: Point = {"width_bytes": width, "ways": ways}
    with traced() as trace:
        row = execute_point(named("smem_bank_conflicts"), point, EmulatedGpu("sm90a"))
    assert row.status == "emulated" and row.checked
    per_load = {int(each) for each in trace.accesses(load=True)["wavefronts"]}
    assert per_load == {round(_measured(width, ways))}


def _measured(width: int, ways: int) -> float:
    point = {"width_bytes": width, "ways": ways}
    runs, _ = record.read_all("h200-sxm-141gb")
    rows = [row for run in runs for row in run.records if row.probe == "smem_bank_conflicts" and row.point == point]
    found = [row.value for row in rows if row.metric == "interval_cycles" and row.value is not None]
    assert found
    return float(np.median(found))


# Head and value dim: rows of 128, 64 and 32 bytes, and odd multiples of them.
AMPERE = [(64, 64), (80, 80), (16, 16), (96, 96), (112, 112), (32, 48), (64, 80), (96, 64)]


@pytest.mark.parametrize(("head_dim", "value_dim"), AMPERE)
def test_the_sm80_kernel_loads_every_fragment_once_and_without_conflict(head_dim: int, value_dim: int) -> None:
    case = ForwardCase(heads_q=1, seq_q=128, seq_kv=192, head_dim=head_dim, head_dim_v=value_dim)
    config = forward_sm80.config_of(64, 32)
    kernel = Kernel(forward_sm80.PATH, config, case.problem)
    shape, inputs = shape_of(case.problem, config), inputs_of(case)
    with traced() as trace:
        outputs = forward_sm80.run(EmulatedDevice(races=False), case, kernel, inputs=inputs)
    assert not judge(case, inputs, outputs)
    fragments = trace.accesses(load=True)
    fragments = fragments[fragments["bytes"] == 16]
    # Of K and V 16 x 16 elements a fragment, read by every warp; of Q each warp its own rows.
    held = shape.warps * (case.seq_kv * (head_dim + value_dim) + shape.warp_rows * head_dim) // 256
    assert len(fragments) == held and set(fragments["wavefronts"]) == set(fragments["phases"]) == {4}


# Head dim, warps, rows a warp, keys a tile, whether p stays in registers.
VOLTA = [
    *[(64, 4, 16, 64, 0), (64, 4, 32, 32, 1), (80, 4, 16, 32, 1), (128, 8, 32, 32, 0)],
    *[(256, 4, 16, 32, 1), (256, 8, 16, 32, 0)],
    *[(128, 8, 16, 64, 1), (128, 8, 32, 32, 1), (256, 8, 16, 32, 1)],  # fastest by the static estimate
]


@pytest.mark.parametrize(("head_dim", "warps", "rows", "keys", "held"), VOLTA)
def test_the_sm70_kernel_loads_without_conflict(head_dim: int, warps: int, rows: int, keys: int, held: int) -> None:
    case = ForwardCase(heads_q=1, seq_q=70, seq_kv=70, head_dim=head_dim, dtype="float16")
    config = forward_sm70.config_of(keys, warps=warps, warp_rows=rows, p_in_registers=held)
    kernel = Kernel(forward_sm70.PATH, config, case.problem)
    inputs = inputs_of(case)
    with traced() as trace:
        outputs = forward_sm70.run(EmulatedDevice(races=False), case, kernel, inputs=inputs)
    assert not judge(case, inputs, outputs)
    assert len(trace.accesses(load=True)) > 100 and trace.conflicts(load=True) == 0
    if head_dim % 64 == 0:
        assert trace.conflicts(load=False) == 0


# Head dim, warps, rows a warp, keys a tile.
TURING = [(64, 4, 16, 64), (64, 4, 32, 32), (80, 4, 16, 32), (96, 8, 32, 16), (128, 4, 32, 32), (240, 4, 16, 16)]


@pytest.mark.parametrize(("head_dim", "warps", "rows", "keys"), TURING)
def test_the_sm75_kernel_loads_every_fragment_once_and_without_conflict(
    head_dim: int, warps: int, rows: int, keys: int
) -> None:
    case = ForwardCase(heads_q=1, seq_q=warps * rows, seq_kv=4 * keys, head_dim=head_dim, dtype="float16")
    config = forward_sm75.config_of(keys, warps=warps, warp_rows=rows)
    kernel = Kernel(forward_sm75.PATH, config, case.problem)
    shape, inputs = turing_shape_of(case.problem, config), inputs_of(case)
    with traced() as trace:
        outputs = forward_sm75.run(EmulatedDevice(races=False), case, kernel, inputs=inputs)
    assert not judge(case, inputs, outputs)
    # Of K and V 16 x 16 elements a fragment, read by every warp; of Q, for each tile again, each warp its own rows.
    q = 0 if shape.q_in_registers else case.seq_kv // keys * rows * head_dim
    fragments = trace.accesses(load=True)
    assert len(fragments) == warps * (2 * case.seq_kv * head_dim + q) // 256
    assert set(fragments["wavefronts"]) == set(fragments["phases"]) == {4}
    if head_dim % 64 == 0:
        assert trace.conflicts(load=False) == 0


def test_rows_without_padding_meet_in_banks() -> None:
    case = ForwardCase(heads_q=1, seq_q=64, seq_kv=64, dtype="float16")
    padded = Kernel(forward_sm70.PATH, forward_sm70.config_of(64), case.problem)
    text = inlined("forward_sm70.cu", padded.include).replace("kKPitch = kRowBytes + 16", "kKPitch = kRowBytes")
    with traced() as trace:
        forward_sm70.run(EmulatedDevice(races=False), case, replace(padded, source=text))
    conflicting = trace.accesses(load=True)
    conflicting = conflicting[conflicting["wavefronts"] > conflicting["phases"]]
    # Eight keys, all in the same four banks, and each twice: of K half of all loads.
    assert set(conflicting["wavefronts"]) == {32} and 2 * len(conflicting) == len(trace.accesses(load=True))
