"""Our kernels without a GPU: their own launchers, with the emulator in the GPU's place and tensors in host memory."""

import ctypes
import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attention.feature import Feature
from attention.kernels.common.layout import empty_on_host
from attention.kernels.launch.counters import PAIR
from attention.kernels.launch.frame import Described
from attention.kernels.launch.machine import Held, standing_in
from attention.kernels.launch.source import PACKAGE, folders_of, generated
from attention.variant import CudaBuild, Variant
from attention.verify import worker
from attention.verify.builds import Build, builds_of
from attention.verify.problems import Case, Limits, case_of
from attention.verify.rows import ForwardProblemRow
from microbench import files
from microbench.console.progress import watching
from microbench.emulator import EmulatedDevice, Mode, TensorMap
from microbench.emulator.device import Array, EmulatedKernel
from microbench.emulator.tensor_map import Element

CPU = torch.device("cpu")
# As a tensor map names them, and as NumPy has their bits.
ELEMENTS: dict[torch.dtype, tuple[Element, torch.dtype]] = {
    torch.bool: ("u8", torch.uint8),
    torch.float16: ("f16", torch.int16),
    torch.bfloat16: ("bf16", torch.int16),
    torch.float32: ("f32", torch.float32),
}
# A second of the emulator: two tiles of rows or keys and a few more.
SMALL = Limits(longest=200, pairs=6 * 10**4, elements=2**16)


@dataclass(frozen=True, eq=False)
class Emulated:
    """attention.kernels.launch.machine.Machine: the emulator, with two SMs."""

    device: EmulatedDevice
    sm_count: int = 2

    def function(self, folder: Path, build: CudaBuild) -> tuple[EmulatedKernel, CudaBuild]:
        """The kernel, and what a launch of it takes. Raises BuildError."""
        (source,) = folder.glob("*.cu")
        given: dict[str, Any] = {"kernel": build.kernel, "defines": build.defines, "include": headers_of(folder)}
        return self.device.load(source.read_text(encoding="utf-8"), source.name, **given), build

    def tensor_map(self, tensor: torch.Tensor, box: tuple[int, ...], swizzle: int) -> bytes:
        (element, bits), strides = ELEMENTS[tensor.dtype], list(tensor.stride())
        # A dimension of one element may carry any stride; the map wants a legal one all the same.
        for axis in range(tensor.dim() - 2, -1, -1):
            if tensor.shape[axis] == 1:
                strides[axis] = (strides[axis + 1] or 1) * -(-tensor.shape[axis + 1] // 16) * 16
        array = torch.as_strided(tensor, tensor.shape, strides).view(bits).numpy()
        sides = (*(1,) * (tensor.dim() - len(box)), *box)
        return TensorMap(array, sides, element, swizzle=swizzle).emulated().tobytes()  # type: ignore[arg-type]

    @cached_property
    def _counters(self) -> dict[int, Array]:
        return {}

    def counters(self, count: int = PAIR) -> int:
        if count not in self._counters:
            self._counters[count] = self.device.full(count, 0, np.int32)
        return int(self._counters[count].ctypes.data)

    def empty(self, size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return empty_on_host(size, strides, dtype)

    def scratch(self, size: int) -> None:
        """As unread."""

    def unread(self, size: int) -> None:
        """There is none: what a kernel writes must be a tensor's that it was told of."""

    def frame(
        self, function: Any, blocks: int, threads: int, kind: type[ctypes.Structure], template: bytes
    ) -> Described:
        return Described(function, blocks, threads, kind, template)

    def launch(self, frame: Described, held: Held, extras: Sequence[torch.Tensor | None]) -> None:
        """Raises DeviceError with what the kernel did that it may not."""
        kernel, build = frame.function
        stored = [tensor.untyped_storage() for tensor in held]
        memory = {each.data_ptr(): each.nbytes() for each in stored}
        memory |= dict(_extent(each) for each in extras if each is not None and each.numel() > 0)
        with self.device.adopting(memory):
            given = (np.void(bytes(frame.memory)),)
            shared = {"shared_mem": build.smem_bytes, "cluster": (build.cluster,)}
            kernel((frame.blocks,), (frame.threads,), given, **shared)


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Address and bytes from the first element to the last: of an operand no kernel reads beside them."""
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), (steps + 1) * tensor.element_size()


@contextmanager
def emulating(mode: Mode = "lazy", seed: int = 1) -> Iterator[Emulated]:
    """Inside, launchers take tensors in host memory. Raises EnvironmentLacks where there is no C++ compiler."""
    machine = Emulated(EmulatedDevice(mode, seed))
    with standing_in(CPU.type, machine):
        yield machine


def cases_with(variant: Variant, feature: Feature | None = None, most: int = 4, arch: str = "") -> list[Case]:
    """Small problems of a kernel, one a build: of those that are compiled with a feature, or of all its head dims."""
    defines = {define.name for define in feature.device.defines} if feature and feature.device else set()
    builds = [each for each in builds_of(variant.path, arch or variant.archs[0]) if not defines or each.asked & defines]
    builds = [each for each in builds if fits(each)]
    chosen = builds[:: max(1, -(-len(builds) // most))]
    return [case_of(build, number, 0, SMALL) for number, build in enumerate(chosen)]


def fits(build: Build) -> bool:
    """Whether a small problem has a tile of keys for each block that shares a row's, and rows for blocks of a pair."""
    values = dict(build.config.values)
    if values.get("cta_group", 1) > 1:  # tests/emulated/test_forward_pair_sm100a.py has larger ones
        return False
    return values.get("key_splits", 1) * values.get("tile_keys", 1) <= SMALL.longest


def judged(cases: Sequence[Case], mode: Mode = "lazy") -> list[ForwardProblemRow]:
    """Each case's row, by the rule that a GPU's results are judged by; it takes seconds. Raises DeviceError."""
    rows = []
    with emulating(mode), watching(len(cases)) as watcher:
        for case in cases:
            watcher.doing("emulator", str(case.problem))
            rows.append(worker.examined(case, CPU))
            watcher.finished()
    return rows


def headers_of(folder: Path) -> tuple[Path, ...]:
    """Where a kernel's headers lie, those that are generated among them: written once, by their content."""
    written = generated(folder)
    digest = hashlib.sha256(repr(written).encode()).hexdigest()[:16]
    place = Path(tempfile.gettempdir()) / f"smscope-headers-{digest}"
    place.mkdir(exist_ok=True)
    for name, text in written:
        files.put(place / name, text)
    return *folders_of(folder), PACKAGE, place
