"""Run every case on the GPU and in the emulator, and write what came of it.

    python -m tests.gpu.differential build                 every cubin into the cache; needs NVRTC, no GPU
    python -m tests.gpu.differential emulate FILE.npz      the emulator's results, for a GPU machine without g++
    python -m tests.gpu.differential run REPORT.jsonl [FILE.npz]

SMSCOPE_EMULATED names such a FILE.npz for the tests. It keeps digests where results must be equal, and a fixed sample
of each seed where they need not be.
"""

import hashlib
import itertools
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench import clocks
from microbench.arch import by_name
from microbench.build import Cubin, Source, compile_all
from microbench.emulator import EmulatedDevice, TensorMap, toolchain
from microbench.errors import DeviceError
from microbench.verification.differential import DifferentialRow, text
from tests.gpu.differential_cases import Buffer, Launch, Maps, cases

SEEDS = 200
CHUNK = 50  # seeds that one process emulates at a time
SAMPLE = 256  # results of a chunk that a saved file keeps where they need not be equal
Array = NDArray[Any]


def sources() -> tuple[Source, ...]:
    """What to compile, each once. m8n8k4 for sm_90a is ptxas' software routine: deliberate."""
    arch = by_name("sm90a")
    wanted = (Source(case.source.read_text(), case.source.name, arch, case.kernel, case.defines) for case in cases())
    return tuple(dict.fromkeys(wanted))


def fill() -> dict[Source, Cubin]:
    """Every cubin, from the cache or into it. Raises the first error."""
    wanted = sources()
    found: dict[Source, Cubin] = {}
    for source, cubin in zip(wanted, compile_all(wanted), strict=True):
        if not isinstance(cubin, Cubin):
            raise cubin
        found[source] = cubin
    return found


def chunks(seeds: int) -> Iterator[range]:
    for first in range(0, seeds, CHUNK):
        yield range(first, min(first + CHUNK, seeds))


def emulated(index: int, seeds: range) -> Array:
    """What the emulator makes of a case: (launches or blocks, ...), all outputs flat and one after another."""
    case, device, found = cases()[index], EmulatedDevice("lazy", races=False), []
    kernel = device.load(case.source.read_text(), case.source.name, kernel=case.kernel, defines=case.defines)
    for launch in case.launches(seeds):
        arrays = [device.asarray(each) for each in launch.arrays]

        def given(arg: Buffer | Maps | int | float, arrays: list[Array] = arrays) -> Any:
            if isinstance(arg, Buffer):
                return arrays[arg.index]
            if not isinstance(arg, Maps):
                return arg
            whole = arrays[arg.index]
            maps = [TensorMap(e, arg.box, arg.element, arg.swizzle) for e in (whole if arg.blocks else [whole])]
            if not arg.blocks:
                return maps[0].emulated()
            return device.asarray(np.frombuffer(b"".join(each.emulated().tobytes() for each in maps), np.uint8))

        kernel(launch.grid, launch.block, tuple(map(given, launch.args)), shared_mem=launch.smem_bytes)
        found += [np.array(arrays[i]).ravel() for i in launch.outputs]
    return np.concatenate(found)


def _build(index: int) -> None:
    case = cases()[index]
    toolchain.build_kernel(case.source.read_text(), case.source.name, case.kernel, case.defines)


def emulate(numbers: list[int], seeds: int = SEEDS) -> Iterator[tuple[int, range, Array]]:
    """(case, seeds, results) of every chunk, on all cores. Raises EnvironmentLacks where there is no C++ compiler."""
    toolchain.runtime()
    once = {(cases()[i].source, cases()[i].kernel, cases()[i].defines): i for i in numbers}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        list(pool.map(_build, once.values()))
        jobs = list(itertools.product(numbers, chunks(seeds)))
        results = pool.map(emulated, *zip(*jobs, strict=True))
        for (number, part), result in zip(jobs, results, strict=True):
            yield number, part, result


def digest(results: Array) -> Array:
    """A hash of exact results. Minus zero is zero: tensor cores and the emulator may sign it differently."""
    same = results + results.dtype.type(0)
    return np.frombuffer(hashlib.sha256(same.tobytes()).digest(), np.uint8)


def sample(results: Array) -> Array:
    """The same few results of a chunk, wherever it is drawn."""
    return results[np.random.default_rng(0).permutation(results.size)[:SAMPLE]]


def saved(file: Path) -> None:
    """Write the emulator's results for a machine that cannot emulate."""
    kept = {
        f"{cases()[number].key} {part.start}": digest(found) if not cases()[number].tolerance else sample(found)
        for number, part, found in emulate(list(range(len(cases()))))
    }
    np.savez_compressed(file, **kept)  # type: ignore[arg-type]


def tensor_map(address: int, shape: tuple[int, ...], itemsize: int, given: Maps) -> bytes:
    """The driver's tensor map of a row-major tensor. Raises DeviceError where the driver refuses it."""
    import ctypes

    from cuda.bindings import driver

    kinds = driver.CUtensorMapDataType
    kind = {
        "u8": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8,
        "u16": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        "u32": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT32,
        "f16": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        "bf16": kinds.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        "f32": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    }[given.element]
    spans = driver.CUtensorMapSwizzle
    span = {
        0: spans.CU_TENSOR_MAP_SWIZZLE_NONE,
        32: spans.CU_TENSOR_MAP_SWIZZLE_32B,
        64: spans.CU_TENSOR_MAP_SWIZZLE_64B,
        128: spans.CU_TENSOR_MAP_SWIZZLE_128B,
    }[given.swizzle]
    sides = shape[::-1]
    # One stride also where one dimension needs none: an empty list would become a null pointer.
    strides = [int(np.prod(sides[:i], dtype=np.int64)) * itemsize for i in range(1, max(2, len(sides)))]
    status, made = driver.cuTensorMapEncodeTiled(
        kind,
        len(shape),
        address,
        [driver.cuuint64_t(side) for side in sides],
        [driver.cuuint64_t(stride) for stride in strides],
        [driver.cuuint32_t(side) for side in given.box[::-1]],
        [driver.cuuint32_t(1) for _ in shape],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        span,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"The driver refuses a tensor map of {shape} with a box of {given.box}: {status}.")
    return ctypes.string_at(int(made.getPtr()), 128)


def measured(cupy: Any, kernel: Any, launch: Launch) -> list[Array]:
    """What the GPU makes of a launch."""
    arrays = [cupy.asarray(each) for each in launch.arrays]

    def given(arg: Buffer | Maps | int | float) -> Any:
        if isinstance(arg, Buffer):
            return arrays[arg.index]
        if isinstance(arg, Maps):
            whole = arrays[arg.index]
            maps = [
                tensor_map(int(each.data.ptr), each.shape, each.itemsize, arg)
                for each in (whole if arg.blocks else [whole])
            ]
            if arg.blocks:
                return cupy.asarray(np.frombuffer(b"".join(maps), np.uint8))
            return np.frombuffer(maps[0], np.dtype((np.void, 128)))[0]
        return np.int32(arg) if isinstance(arg, int) else np.float32(arg)

    args = tuple(map(given, launch.args))  # kept until the launch has ended: maps lie in arrays of their own
    kernel(launch.grid, launch.block, args, shared_mem=launch.smem_bytes)
    return [arrays[i].get().ravel() for i in launch.outputs]


def deviation(found: Array, expected: Array) -> Array:
    """Error of each result, relative to those above one; of bits, their distance."""
    wide = (found.astype(np.float64), expected.astype(np.float64))
    off: Array = np.abs(wide[0] - wide[1]) / np.maximum(1.0, np.abs(wide[1]))
    return off


def differing(found: Array, expected: Array, tolerance: float) -> tuple[int, float]:
    """(results beyond the tolerance, worst error). What is no number differs, unless it is so on both sides."""
    with np.errstate(invalid="ignore"):
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        off = np.where(same, 0.0, deviation(found, expected))
    return int(np.count_nonzero(~(off <= tolerance))), float(off.max(initial=0.0))


def compare(given: Mapping[str, Array] | None, seeds: int = SEEDS) -> Iterator[DifferentialRow]:
    """A row for every case. `given`: saved results of the emulator; without them it runs here."""
    from microbench.device.cuda import CudaDevice

    everything = list(range(len(cases())))
    if given is None:
        stream = emulate(everything, seeds)
    else:
        jobs = itertools.product(everything, chunks(seeds))
        stream = ((i, part, given[f"{cases()[i].key} {part.start}"]) for i, part in jobs)
    cubins, device = fill(), CudaDevice(0)
    driver = clocks.facts(device.gpu).driver or ""
    for number, parts in itertools.groupby(stream, key=lambda each: each[0]):
        case = cases()[number]
        source = Source(case.source.read_text(), case.source.name, by_name("sm90a"), case.kernel, case.defines)
        kernel, wrong, worst = device.load(cubins[source]), 0, 0.0
        digests = given is not None and not case.tolerance
        for _, part, expected in parts:
            launches = case.launches(part)
            with device.guard(f"run {case.key}"):
                found = np.concatenate([each for launch in launches for each in measured(device.cupy, kernel, launch)])
            if digests:
                wrong += int(not np.array_equal(digest(found), expected))
                continue
            more, off = differing(found if given is None else sample(found), expected, case.tolerance)
            wrong, worst = wrong + more, max(worst, off)
        yield DifferentialRow(
            gpu=device.machine.gpu,
            driver=driver,
            wrapper=case.wrapper,
            layout=case.layout,
            values=case.values,
            seeds=seeds,
            comparison="tolerance" if case.tolerance else "exact",
            tolerance=case.tolerance,
            differing=wrong,
            worst_error=None if digests or not np.isfinite(worst) else worst,
            verdict="differs" if wrong else "agrees",
        )


@contextmanager
def results(file: str | None) -> Iterator[Mapping[str, Array] | None]:
    """Saved results of the emulator, where there are any."""
    if not file:
        yield None
        return
    with np.load(file) as kept:
        yield kept


def main(verb: str, *names: str) -> int:
    """The command line; 1 where something differs."""
    if verb == "build":
        sys.stdout.write(f"{len(fill())} cubins\n")
        return 0
    if verb == "emulate":
        saved(Path(names[0]))
        return 0
    with results(names[1] if len(names) > 1 else None) as given:
        rows = list(compare(given))
    Path(names[0]).write_text(text(rows), encoding="utf-8")
    bad = [row for row in rows if row.verdict == "differs"]
    for row in bad:
        sys.stdout.write(f"{row.wrapper} {row.layout} {row.values}: {row.differing} differ, worst {row.worst_error}\n")
    sys.stdout.write(f"{len(rows) - len(bad)} of {len(rows)} cases agree\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
