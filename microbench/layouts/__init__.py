"""Where each element of a tensor instruction's matrices lies: which thread holds it, in which register.

    (product,) = ampere()          product.a.thread[m, k], product.d.register[m, n]
    pairs = volta("row", "col")    four products, one for each quad pair
    hopper(32), swizzle()          accumulators of a warpgroup; B in shared memory under the 128-byte swizzle
    blackwell(32)                  D in tensor memory, and tensor_memory_reach(): which warp reads which lanes

All are found by experiment (derive.py) on the wrappers of cuda/ptx in the emulator; its kernel also compiles for a GPU.
Rows, columns and k are numbered in the order of the fragments' warps, registers, lanes and halves.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from microbench.emulator import EmulatedDevice, EmulatedKernel
from microbench.errors import DeviceError
from microbench.layouts.derive import Numbers, Values, numbered_like, solve

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "fragments.cu"
WARP = 32
ROW_BYTES = 128  # of a tile under the 128-byte swizzle: 64 elements of 16 bits, four slices of k16
SLICES = 4

Order = Literal["row", "col"]


@dataclass(frozen=True, eq=False)
class Fragment:
    """One matrix: the thread that holds each element, and which element of that thread's fragment it is.

    Both arrays have the matrix's shape. A 32-bit register holds `per_register` elements, the lower one first.
    """

    name: str
    thread: Numbers
    element: Numbers
    per_register: int

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.thread.shape
        return rows, columns

    @property
    def register(self) -> Numbers:
        """The number of the register within the fragment."""
        return self.element // self.per_register

    def rows(self, first: int, last: int) -> "Fragment":
        return Fragment(self.name, self.thread[first:last], self.element[first:last], self.per_register)


@dataclass(frozen=True, eq=False)
class Product:
    """A times B is D. Where B lies in shared memory its `thread` is 0, its `element` the 16-bit cell of the tile."""

    a: Fragment
    b: Fragment
    d: Fragment

    @property
    def flops(self) -> int:
        """Two for each multiply-add."""
        (m, k), (_, n) = self.a.shape, self.b.shape
        return 2 * m * n * k


@dataclass(frozen=True)
class _Registers:
    """The registers of an operand; its elements are numbered by warp, register, lane and half."""

    threads: int
    elements: int
    per_register: int

    @property
    def _number(self) -> Numbers:
        """The number of each (thread, element), counted by warp, register, lane and half."""
        thread, element = np.indices((self.threads, self.elements))
        register, half = divmod(element, self.per_register)
        warp, lane = divmod(thread, WARP)
        place = (warp * (self.elements // self.per_register) + register) * WARP + lane
        return np.asarray(place * self.per_register + half, np.int64)

    def pack(self, values: Values) -> Values:
        """(experiments, elements by number) to the words of each thread: 16-bit floats, lower half first."""
        return np.ascontiguousarray(values[:, self._number].astype(np.float16)).view(np.uint32)

    def fragment(self, name: str, numbers: Numbers) -> Fragment:
        places = np.argsort(self._number.ravel())[numbers]
        return Fragment(name, places // self.elements, places % self.elements, self.per_register)


def _kernel(define: str, kernel: str = "product", **more: int) -> EmulatedKernel:
    defines = ((define, 1), *more.items())
    return EmulatedDevice(races=False).load(SOURCE.read_text(), SOURCE.name, kernel=kernel, defines=defines)


def _accumulators(name: str, numbers: Numbers, elements: int) -> Fragment:
    return Fragment(name, numbers // elements, numbers % elements, 1)


@cache
def volta(a_order: Order = "row", b_order: Order = "col") -> tuple[Product, ...]:
    """mma.m8n8k4 with f32 accumulators: the products of the four quad pairs, for one choice of orders.

    Row-major A with column-major B numbers rows and columns; the others are numbered by the accumulators they share.
    """
    operand = _Registers(WARP, 4, 2)
    kernel = _kernel("VOLTA")

    def multiply(a: Values, b: Values) -> Values:
        d = np.empty((len(a), WARP * 8), np.float32)
        kernel((len(a),), (WARP,), (operand.pack(a), operand.pack(b), d, int(a_order == "col"), int(b_order == "row")))
        return d

    solved = solve(multiply, WARP * 4, WARP * 4)
    if (a_order, b_order) != ("row", "col"):
        known = [pair.d.thread * 8 + pair.d.element for pair in volta()]
        solved = tuple(numbered_like(pair, d) for pair, d in zip(solved, known, strict=True))
    return tuple(
        Product(
            operand.fragment(f"A, {a_order}-major", pair.a),
            operand.fragment(f"B, {b_order}-major", pair.b),
            _accumulators("D, f32", pair.d, 8),
        )
        for pair in solved
    )


@cache
def ampere() -> tuple[Product, ...]:
    """mma.m16n8k16, f16 with f32 accumulators: one product."""
    a_registers, b_registers = _Registers(WARP, 8, 2), _Registers(WARP, 4, 2)
    kernel = _kernel("AMPERE")

    def multiply(a: Values, b: Values) -> Values:
        d = np.empty((len(a), WARP * 4), np.float32)
        kernel((len(a),), (WARP,), (a_registers.pack(a), b_registers.pack(b), d))
        return d

    return tuple(
        Product(a_registers.fragment("A", one.a), b_registers.fragment("B", one.b), _accumulators("D, f32", one.d, 4))
        for one in solve(multiply, WARP * 8, WARP * 4)
    )


@cache
def ldmatrix() -> Fragment:
    """ldmatrix.x4: row l is the 16 bytes at lane l's address; `thread` is who receives each of its eight elements."""
    image = np.arange(WARP * 8, dtype=np.uint16).view(np.uint32)
    words = np.empty((WARP, 4), np.uint32)
    _kernel("LOADED", "load")((1,), (WARP,), (image, words), shared_mem=WARP * 16)
    received = np.argsort(words.view(np.uint16).ravel()).reshape(WARP, 8)
    return Fragment("memory", received // 8, received % 8, 2)


@cache
def hopper(columns: int = 8, k_slice: int = 0) -> Product:
    """wgmma.m64nNk16, A in registers, B a K-major tile of `columns` rows of 128 bytes under the 128-byte swizzle.

    Args:
        columns: N, one of the shapes of cuda/ptx/wgmma.cuh.
        k_slice: which 16 of the tile's 64 k the descriptor points at, 0 to 3.
    """
    threads, cells = 128, columns * ROW_BYTES // 2
    operand = _Registers(threads, 8, 2)
    kernel = _kernel("HOPPER", COLUMNS=columns)

    def multiply(a: Values, b: Values) -> Values:
        image = np.ascontiguousarray(b.astype(np.float16)).view(np.uint32)
        d = np.empty((len(a), threads * columns // 2), np.float32)
        kernel((len(a),), (threads,), (operand.pack(a), image, d, k_slice), shared_mem=2 * cells)
        return d

    (one,) = solve(multiply, threads * 8, cells)
    b = Fragment("B, in shared memory", np.zeros_like(one.b), one.b, 2)
    return Product(operand.fragment("A", one.a), b, _accumulators("D, f32", one.d, columns // 2))


@cache
def swizzle() -> Numbers:
    """(8, 64): the 16-bit cell in which wgmma looks for element (n, k) of a tile of eight rows of 128 bytes."""
    return np.concatenate([hopper(8, k_slice).b.element.T for k_slice in range(SLICES)], axis=1)


@cache
def blackwell(columns: int = 32) -> Product:
    """tcgen05.mma of M = 128, D read by tcgen05.ld.32x32b; A and B are cells of K-major tiles without swizzle.

    `columns` is N, a power of two from 16 to 32.
    """
    threads = 128
    kernel = _kernel("BLACKWELL", COLUMNS=columns)

    def multiply(a: Values, b: Values) -> Values:
        images = [np.ascontiguousarray(cells.astype(np.float16)).view(np.uint32) for cells in (a, b)]
        d = np.empty((len(a), threads * columns), np.uint32)
        kernel((len(a),), (threads,), (*images, d), shared_mem=4096 + 32 * columns + 16)
        return d.view(np.float32)

    (one,) = solve(multiply, threads * 16, columns * 16)
    a, b = (Fragment(name, np.zeros_like(cells), cells, 2) for name, cells in (("A", one.a), ("B", one.b)))
    return Product(a, b, _accumulators("D, f32", one.d, columns))


@cache
def tensor_memory_reach(warps: int = 8) -> Numbers:
    """(warps, 4): 1 where a warp of a block may read that quarter of the lanes of tensor memory, 0 where it may not."""
    kernel = _kernel("BLACKWELL", "reach", COLUMNS=32)
    found = np.ones((warps, 4), np.int64)
    for warp, quarter in np.ndindex(found.shape):
        try:
            kernel((1,), (WARP * warps,), (warp, quarter, np.empty(WARP * warps, np.uint32)), shared_mem=16)
        except DeviceError as error:
            if "reaches lanes" not in str(error):
                raise
            found[warp, quarter] = 0
    return found
