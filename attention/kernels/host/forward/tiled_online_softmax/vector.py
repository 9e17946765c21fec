"""SIMD in LLVM IR for the host kernel: what Numba's loop vectoriser cannot find by itself.

LLVM vectorises an inner loop, but keeps no block of accumulators in registers across an outer one; that block is the
whole difference between 30 % and 95 % of a core's multiply-adds. So three operations are written as IR, over vectors as
wide as this CPU has them:

    product        C[i, lanes] = C * factors[lanes] + sum over k of A(i, k) * B[k, lanes], both products of attention
    raise_maximum  the running maximum of each lane, and the factor that brings older sums down to it
    exponentiate   scores -> exp2(score - maximum), and their sum

Every value of a lane belongs to one query, so no reduction ever crosses lanes, and K and V are read where they lie, as
scalars that the load unit broadcasts: neither is ever transposed or copied.
"""

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from attention.kernels.host.forward.tiled_online_softmax.registers import PRODUCT_ROWS, VECTOR_BYTES
from attention.kernels.host.forward.tiled_online_softmax.variant import VECTORS

I64 = ir.IntType(64)


class Lanes:
    """Emits vector code for one element type: a panel row is VECTORS registers of `count` lanes."""

    def __init__(self, builder: Any, element: types.Float) -> None:
        """Bind an IR builder to float32 or float64."""
        self.builder = builder
        self.bits = element.bitwidth
        self.scalar = ir.FloatType() if self.bits == 32 else ir.DoubleType()
        self.count = VECTOR_BYTES * 8 // self.bits
        self.type = ir.VectorType(self.scalar, self.count)
        self.integers = ir.VectorType(ir.IntType(self.bits), self.count)

    def constant(self, value: float) -> Any:
        """The same number in every lane."""
        return ir.Constant(self.type, [value] * self.count)

    def address(self, base: Any, elements: Any) -> Any:
        """`base` plus a number of elements, both integers."""
        return self.builder.add(base, self.builder.mul(elements, I64(self.bits // 8)))

    def at(self, base: Any, row: Any, vector: int) -> Any:
        """Address of one register of one panel row."""
        row = I64(row) if isinstance(row, int) else row
        start = self.builder.mul(row, I64(VECTORS * self.count))
        return self.address(base, self.builder.add(start, I64(vector * self.count)))

    def load(self, address: Any) -> Any:
        """One aligned register; all scratch memory starts on a cache line."""
        value = self.builder.load(self.builder.inttoptr(address, self.type.as_pointer()))
        value.align = VECTOR_BYTES
        return value

    def store(self, value: Any, address: Any) -> None:
        """Write one aligned register."""
        self.builder.store(value, self.builder.inttoptr(address, self.type.as_pointer())).align = VECTOR_BYTES

    def broadcast(self, address: Any) -> Any:
        """One scalar of K or V in every lane."""
        scalar = self.builder.load(self.builder.inttoptr(address, self.scalar.as_pointer()))
        scalar.align = self.bits // 8
        undefined = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.count), [0] * self.count)
        return self.builder.shuffle_vector(first, undefined, zeros)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        """A * b + c with one rounding."""
        kind = ir.FunctionType(self.type, [self.type] * 3)
        name = f"llvm.fma.v{self.count}f{self.bits}"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), [a, b, c])

    def larger(self, a: Any, b: Any) -> Any:
        """A where a > b, else b; a NaN in `a` loses and a NaN in `b` stays."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def exp2(self, x: Any) -> Any:
        """2**x for x <= 0, within 1 unit of the last place; 0 where it would be denormal; NaN stays NaN.

        x = n + f with |f| <= 1/2: adding 1.5 * 2**mantissa rounds x to n in the low bits, which already hold the
        exponent's bias, so that a shift makes 2**n of them. 2**f is a polynomial.
        """
        mantissa, bias, degree = (23, 127, 7) if self.bits == 32 else (52, 1023, 13)
        x = self.larger(self.constant(-float(bias)), x)
        magic = self.constant(1.5 * 2.0**mantissa + bias)
        rounded = self.builder.fadd(x, magic)
        fraction = self.builder.fsub(x, self.builder.fsub(rounded, magic))
        coefficients = exp2_polynomial(degree)
        power = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            power = self.fma(power, fraction, self.constant(coefficient))
        shift = ir.Constant(self.integers, [mantissa] * self.count)
        exponent = self.builder.shl(self.builder.bitcast(rounded, self.integers), shift)
        return self.builder.fmul(power, self.builder.bitcast(exponent, self.type))


def exp2_polynomial(degree: int) -> list[float]:
    """Taylor coefficients of 2**f, lowest first; on [-1/2, 1/2] degree 7 serves float32 and degree 13 float64.

    The constant is exactly 1, as a fitted polynomial's is not: a maximum that did not move must scale older sums by 1,
    or every tile adds an error of the same sign (with a Chebyshev fit, 2e-5 in lse after 16,384 keys).
    """
    return [math.log(2.0) ** power / math.factorial(power) for power in range(degree + 1)]


def _product(rows: int, added: bool) -> Any:
    @intrinsic
    def product(context, zero, c, a, a_row, a_depth, b, depth, factors):  # type: ignore[no-untyped-def]
        def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
            lanes = Lanes(builder, signature.args[0])
            _, c, a, a_row, a_depth, b, depth, factors = args
            cells = [(row, vector) for row in range(rows) for vector in range(VECTORS)]
            sums = {cell: cgutils.alloca_once(builder, lanes.type) for cell in cells}  # LLVM keeps them in registers
            for cell in cells:
                builder.store(lanes.constant(0.0), sums[cell])
            with cgutils.for_range(builder, depth) as loop:
                b_vectors = [lanes.load(lanes.at(b, loop.index, vector)) for vector in range(VECTORS)]
                for row in range(rows):
                    offset = builder.add(builder.mul(a_row, I64(row)), builder.mul(a_depth, loop.index))
                    a_value = lanes.broadcast(lanes.address(a, offset))
                    for vector in range(VECTORS):
                        cell = sums[row, vector]
                        builder.store(lanes.fma(a_value, b_vectors[vector], builder.load(cell)), cell)
            for row, vector in cells:
                total, place = builder.load(sums[row, vector]), lanes.at(c, row, vector)
                if added:  # the tile's own sum first: adding keys one by one to a long sum would lose bits
                    total = lanes.fma(lanes.load(place), lanes.load(lanes.at(factors, 0, vector)), total)
                lanes.store(total, place)
            return context.get_dummy_value()

        return types.void(zero, *[types.intp] * 7), emit

    return product


# (zero, c, a, a_row, a_depth, b, depth, factors): addresses; a_row and a_depth are distances in elements.
fresh_block = _product(PRODUCT_ROWS, added=False)
fresh_single = _product(1, added=False)
added_block = _product(PRODUCT_ROWS, added=True)
added_half = _product(PRODUCT_ROWS // 2, added=True)
added_single = _product(1, added=True)


@intrinsic
def raise_maximum(context, zero, highest, factors, scores, rows):  # type: ignore[no-untyped-def]
    """highest[lane] rises to the largest of scores[0:rows, lane]; factors[lane] = exp2(old highest - new highest)."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        lanes = Lanes(builder, signature.args[0])
        _, highest, factors, scores, rows = args
        old = [lanes.load(lanes.at(highest, 0, vector)) for vector in range(VECTORS)]
        cells = [cgutils.alloca_once_value(builder, value) for value in old]
        with cgutils.for_range(builder, rows) as loop:
            for vector, cell in enumerate(cells):
                score = lanes.load(lanes.at(scores, loop.index, vector))
                builder.store(lanes.larger(score, builder.load(cell)), cell)
        for vector, cell in enumerate(cells):
            new = builder.load(cell)
            lanes.store(new, lanes.at(highest, 0, vector))
            lanes.store(lanes.exp2(builder.fsub(old[vector], new)), lanes.at(factors, 0, vector))
        return context.get_dummy_value()

    return types.void(zero, *[types.intp] * 4), emit


@intrinsic
def exponentiate(context, zero, scores, highest, sums, factors, rows):  # type: ignore[no-untyped-def]
    """Scores = exp2(scores - highest) in place; sums[lane] = sums * factors + the new scores of the lane."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        lanes = Lanes(builder, signature.args[0])
        _, scores, highest, sums, factors, rows = args
        for vector in range(VECTORS):
            top = lanes.load(lanes.at(highest, 0, vector))
            total = cgutils.alloca_once_value(builder, lanes.constant(0.0))
            with cgutils.for_range(builder, rows) as loop:
                place = lanes.at(scores, loop.index, vector)
                power = lanes.exp2(builder.fsub(lanes.load(place), top))
                lanes.store(power, place)
                builder.store(builder.fadd(builder.load(total), power), total)
            place = lanes.at(sums, 0, vector)
            factor = lanes.load(lanes.at(factors, 0, vector))
            lanes.store(lanes.fma(lanes.load(place), factor, builder.load(total)), place)
        return context.get_dummy_value()

    return types.void(zero, *[types.intp] * 5), emit


@intrinsic
def load(context, zero, address):  # type: ignore[no-untyped-def]
    """The element at an address, of the type of `zero`."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        lanes = Lanes(builder, signature.args[0])
        value = builder.load(builder.inttoptr(args[1], lanes.scalar.as_pointer()))
        value.align = lanes.bits // 8
        return value

    return zero(zero, types.intp), emit


@intrinsic
def store(context, zero, value, address):  # type: ignore[no-untyped-def]
    """Write a number, as the type of `zero`, at an address."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        lanes = Lanes(builder, signature.args[0])
        builder.store(args[1], builder.inttoptr(args[2], lanes.scalar.as_pointer())).align = lanes.bits // 8
        return context.get_dummy_value()

    return types.void(zero, zero, types.intp), emit


@intrinsic
def take_ticket(context, counter):  # type: ignore[no-untyped-def]
    """Add 1 to the int64 at an address and return what it was, atomically: threads draw their tiles from it."""

    def emit(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw("add", builder.inttoptr(args[0], I64.as_pointer()), I64(1), "monotonic")

    return types.intp(types.intp), emit
