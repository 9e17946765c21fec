"""The emulator against layouts that nobody here wrote: those of the CuTe headers in the package nvidia-cutlass.

Fragments and tiles are laid out as CuTe says; the emulated instruction must then multiply exactly.
"""

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.emulator import EmulatedDevice, toolchain
from microbench.verify.differential import number_formats
from microbench.verify.differential.operands import fragments
from tests.emulated import formats
from tests.emulated.wrappers import integers, load, mma_defines

pytestmark = pytest.mark.slow

Indices = NDArray[np.int64]
SOURCE = Path(__file__).with_name("fragments_of_cute.cpp")


def packaged(*parts: str) -> Path | None:
    """A folder inside an installed package."""
    spec = importlib.util.find_spec(parts[0])
    for root in (spec.submodule_search_locations or []) if spec else []:
        if (found := Path(root).joinpath(*parts[1:])).is_dir():
            return found
    return None


def cute_says(source: Path, folder: Path) -> dict[str, Indices]:
    """The numbers that a program against CuTe's headers prints, by the name that begins each line."""
    folders = [packaged("cutlass_library", "source", "include")]
    folders += [packaged("nvidia", name, "include") for name in ("cuda_runtime", "cuda_cccl", "cuda_nvcc")]
    if None in folders:
        pytest.skip("needs the headers of CUTLASS and CUDA: pip install 'smscope[oracles]'")
    program = folder / source.stem
    includes = [f"-I{folder}" for folder in folders]
    subprocess.run([toolchain.compiler(), "-std=c++17", "-w", *includes, str(source), "-o", str(program)], check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in printed.splitlines() if "." in line and not line.startswith("ERROR")]
    return {name: np.array(values, np.uint64).astype(np.int64) for name, *values in lines}


@pytest.fixture(scope="session")
def cute(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Indices]:
    return cute_says(SOURCE, tmp_path_factory.mktemp("cute"))


def fragment(cute: dict[str, Indices], name: str, threads: int, extent: int) -> tuple[Indices, Indices]:
    """(index in the first mode, in the second) of (thread, element): CuTe counts the first mode fastest."""
    linear = cute[name].reshape(threads, -1)
    return linear % extent, linear // extent


VOLTA = ["row.col.f32", "col.row.f32", "col.col.f32", "row.row.f32", "row.col.f16"]


@pytest.mark.parametrize("name", VOLTA)
def test_m8n8k4_agrees_with_cute(cute, name):
    a_order, b_order, sums = name.split(".")
    rng = np.random.default_rng(len(name))
    a, b, c = integers(rng, 4, 8, 4), integers(rng, 4, 8, 4), integers(rng, 4, 8, 8)
    # CuTe numbers the eight threads of a quad pair: the lower quad, then the upper one.
    lane = np.arange(32)
    pair, thread = (lane % 16 // 4)[:, None], lane % 4 + lane // 16 * 4
    of = {operand: [x[thread] for x in fragment(cute, f"m8n8k4.{name}.{operand}", 8, 8)] for operand in "abc"}
    fa, fb = (fragments(m[(pair, *of[operand])], "f16") for m, operand in ((a, "a"), (b, "b")))
    expected = (a @ b.transpose(0, 2, 1) + c)[(pair, *of["c"])]
    begin = np.ascontiguousarray(c[(pair, *of["c"])])
    d: Any = begin if sums == "f32" else fragments(begin, "f16")
    wrapper = f"mma_m8n8k4<ptx::Order::{a_order},ptx::Order::{b_order}>"
    load(EmulatedDevice(), "mma", **mma_defines(wrapper, fa, fb, d))((1,), (32,), (fa, fb, d))
    np.testing.assert_array_equal(d if sums == "f32" else d.view(np.float16).astype(np.float32), expected)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("a_major", ["K", "MN"])
@pytest.mark.parametrize("b_major", ["K", "MN"])
@pytest.mark.parametrize("source", ["ss", "rs"])
def test_wgmma_agrees_with_cute(cute, source, b_major, a_major, swizzle):
    rng = np.random.default_rng(swizzle)
    a, b, c = integers(rng, 64, 16), integers(rng, 64, 16), integers(rng, 64, 64)
    images = []
    for matrix, major in ((a, a_major), (b, b_major)):
        leading, stride, *places = cute[f"tile.{major}.{swizzle}"]
        image = np.full(64 * 64, 0x7FFF, np.uint16)
        image[np.array(places) // 2] = fragments(matrix, "f16").view(np.uint16).ravel()
        images += [image.view(np.uint32), image.size // 2, int(leading), int(stride)]
    places_c = fragment(cute, "wgmma.c.64", 128, 64)
    registers = fragments(a[fragment(cute, "wgmma.a", 128, 64)], "f16")
    d = np.ascontiguousarray(c[places_c])
    defines: dict[str, int | str] = {"COLUMNS": 64, "WGMMA": f"wgmma_f16_{source}"}
    defines |= {"A_MAJOR": a_major, "B_MAJOR": b_major, **({"FROM_REGISTERS": 1} if source == "rs" else {})}
    load(EmulatedDevice(), "wgmma", **defines)((1,), (128,), (*images, swizzle, registers, d), shared_mem=65536)
    np.testing.assert_array_equal(d, (a @ b.T + c)[places_c])


# Those of 16 bits have the same fragments, which CuTe prints once.
FORMATS = [
    *("m16n8k16.f16.f32", "m16n8k16.bf16.f32", "m16n8k8.f16.f32", "m16n8k8.bf16.f32", "m16n8k8.tf32.f32"),
    "m16n8k16.f16.f16",
    "m16n8k4.tf32.f32",
    "m16n8k16.s8.s32",
    "m16n8k32.s8.s32",
    "m16n8k32.u8_s8.s32",
    "m16n8k32.e4m3_e5m2.f32",
    "m16n8k32.e4m3.f16",
]


PRINTED = {f"m16n8k{k}.{kind}.f32": f"m16n8k{k}" for k in (8, 16) for kind in ("f16", "bf16")}
PRINTED["m16n8k8.tf32.f32"] = "m16n8k8.tf32"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_of_mma_sync_agrees_with_cute(cute, name):
    shape, kind, sums = name.split(".")
    wrapper = next(w for w in number_formats.MMA if (f"m16n8k{w.k}", w.name, w.sums) == (shape, kind, sums))
    printed = PRINTED.get(name, name)
    sides = (("a", 16), ("b", 8), ("c", 16))
    places = [fragment(cute, f"{printed}.{operand}", 32, extent) for operand, extent in sides]
    rng = np.random.default_rng(wrapper.k)
    a, b, c = (rng.integers(0 if "u8" in kind else -4, 5, side) for side in ((16, wrapper.k), (8, wrapper.k), (16, 8)))
    fa, fb = (
        number_formats.registers(number_formats.bits_of(m[at], of))
        for m, at, of in ((a, places[0], wrapper.a), (b, places[1], wrapper.b))
    )
    d = np.ascontiguousarray(c[places[2]].astype(number_formats.SUMS[sums]))
    formats.run_mma(wrapper, fa, fb, d)
    np.testing.assert_array_equal(d, (a @ b.T + c)[places[2]])


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("wrapper", number_formats.WGMMA[2:], ids=lambda wrapper: wrapper.name)
def test_every_format_of_wgmma_agrees_with_cute(cute, wrapper, swizzle):
    size = "tf32" if wrapper.a == "tf32" else "8bit"
    rng = np.random.default_rng(swizzle)
    a, b = (rng.integers(0, 5, (64, wrapper.k)) for _ in range(2))
    c = rng.integers(-100, 100, (64, 64)).astype(number_formats.SUMS[wrapper.sums])
    images = []
    for matrix, kind in ((a, wrapper.a), (b, wrapper.b)):
        leading, stride, *places = cute[f"tile.{size}.{swizzle}"]
        elements = number_formats.bits_of(matrix, kind).ravel()
        memory = np.full(64 * 128 // elements.itemsize, 0x7F, elements.dtype)
        memory[np.array(places) // elements.itemsize] = elements
        images.append(formats.Image(memory.view(np.uint32), int(leading), int(stride)))
    places_c = fragment(cute, "wgmma.c.64", 128, 64)
    from_registers = number_formats.registers(
        number_formats.bits_of(a[fragment(cute, f"wgmma.a.{size}", 128, 64)], wrapper.a)
    )
    for source in (images[0], from_registers):
        d = np.ascontiguousarray(c[places_c])
        formats.run_wgmma(EmulatedDevice(), wrapper, source, images[1], d, swizzle)
        np.testing.assert_array_equal(d, (a @ b.T + c)[places_c])
