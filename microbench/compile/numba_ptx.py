"""Single instructions for Numba CUDA kernels: the second method's own way to LDG, LDS and the clock.

    at = chase_global(at, 32)    # in a kernel: 32 dependent loads back to back, nothing between

Addresses are plain integers (int64 global, int32 shared), for an array's index would be computed before each load.
Counts, strides and widths are compile-time constants: literals, or variables that the kernel's maker closed over.
Timed loops are written `while trips > 0: ...; trips = countdown(trips)`. Numba widens int32 arithmetic to int64.

Importing this module needs numba-cuda: probes import it inside the function that makes their twin.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

_I8, _I32, _I64, _VOID = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.VoidType()
_ARENA = "dynamic_shared_memory"
# PTX type and words of one shared access, by its width in bytes.
_SHARED = {4: ("u32", 1), 8: ("v2.u32", 2), 16: ("v4.u32", 4)}
# PTX type, register constraint, and the pattern that settle compares with, by Numba type.
_SCALARS = {types.int32: ("u32", "r", "0x7fc0dead"), types.int64: ("u64", "l", "0x7fc0dead7fc0dead")}


def _instruction(typing: Callable[..., Any]) -> Any:
    """numba-cuda's `intrinsic`; `typing` gets the argument types, and returns None where they are not its own."""
    return intrinsic(typing)


def _emits(result: Any, parameters: tuple[Any, ...], emit: Callable[..., Any]) -> tuple[Any, Callable[..., Any]]:
    """Signature and code generator of an instruction; `emit` gets the IR builder and the operands."""

    def generate(context: Any, builder: Any, _: Any, operands: Any) -> Any:
        value = emit(builder, *operands)
        return context.get_dummy_value() if value is None else value

    return result(*parameters), generate


def _asm(builder: Any, result: ir.Type, text: str, constraints: str, *operands: Any) -> Any:
    """PTX that keeps its place among loads, stores and clock reads."""
    shape = ir.FunctionType(result, [operand.type for operand in operands])
    fenced = ",".join(filter(None, (constraints, "~{memory}")))
    return builder.call(ir.InlineAsm(shape, text, fenced, side_effect=True), operands)


def _does(builder: Any, text: str, constraints: str, *operands: Any) -> None:
    _asm(builder, _VOID, text, constraints, *operands)


def _constants(*given: Any) -> bool:
    return all(isinstance(kind, types.IntegerLiteral) for kind in given)


def _words(builder: Any, load: str, count: int, address: Any, constraint: str, offset: int = 0) -> list[Any]:
    """The `count` 32-bit words of one load."""
    if count == 1:
        return [_asm(builder, _I32, f"{load} $0, [$1+{offset}];", f"=r,{constraint}", address)]
    registers = ", ".join(f"${i}" for i in range(count))
    shape = ir.LiteralStructType([_I32] * count)
    text, constraints = f"{load} {{{registers}}}, [${count}+{offset}];", ",".join(["=r"] * count + [constraint])
    loaded = _asm(builder, shape, text, constraints, address)
    return [builder.extract_value(loaded, i) for i in range(count)]


def _xor(builder: Any, seed: Any, loads: list[list[Any]]) -> Any:
    for word in (word for load in loads for word in load):
        seed = builder.xor(seed, word)
    return seed


# The clock -----------------------------------------------------------------------------------------------------------


@_instruction
def clock64(_: Any) -> Any:
    """Cycles of this SM as int64: CS2R, as ptx::clock64."""
    return _emits(types.int64, (), lambda builder: _asm(builder, _I64, "mov.u64 $0, %clock64;", "=l"))


@_instruction
def settle(_: Any, value: Any) -> Any:
    """Waits until `value` (int32 or int64) has arrived: ISETP and a predicated PMTRIG, as ptx::settle."""
    if value not in _SCALARS:
        return None
    kind, constraint, pattern = _SCALARS[value]
    text = f"{{.reg .pred p; setp.eq.{kind} p, $0, {pattern}; @p pmevent 1;}}"
    return _emits(types.void, (value,), lambda builder, value: _does(builder, text, constraint, value))


@_instruction
def smid(_: Any) -> Any:
    """The SM that runs this thread, int32."""
    return _emits(types.int32, (), lambda builder: _asm(builder, _I32, "mov.u32 $0, %smid;", "=r"))


@_instruction
def report(_: Any, clocks: Any, start: Any, end: Any) -> Any:
    """Each warp's readings to clocks[2 * warp] and [2 * warp + 1], warps numbered through all blocks (int64)."""
    text = """{.reg .pred follower; .reg .b32 thread, lane, block, threads; .reg .b64 place;
        mov.u32 thread, %tid.x; mov.u32 block, %ctaid.x; mov.u32 threads, %ntid.x;
        and.b32 lane, thread, 31; setp.ne.b32 follower, lane, 0;
        mad.lo.u32 thread, block, threads, thread; shr.u32 thread, thread, 5;
        mad.wide.u32 place, thread, 16, $0;
        @!follower st.global.v2.u64 [place], {$1, $2};}"""
    return _emits(types.void, (types.int64,) * 3, lambda builder, *given: _does(builder, text, "l,l,l", *given))


@_instruction
def countdown(_: Any, left: Any) -> Any:
    """One less than `left` (int32), for `while left > 0`: one instruction, and a loop that is not unrolled.

    NVVM unrolls a loop four times, with a remainder loop behind, where it can compute the number of trips: not here.
    """
    text = "add.s32 $0, $1, -1;"
    return _emits(types.int32, (types.int32,), lambda builder, left: _asm(builder, _I32, text, "=r,r", left))


# Global memory -------------------------------------------------------------------------------------------------------


@_instruction
def load_global(_: Any, address: Any) -> Any:
    text = "ld.global.u64 $0, [$1];"
    return _emits(types.int64, (types.int64,), lambda builder, address: _asm(builder, _I64, text, "=l,l", address))


@_instruction
def store_global(_: Any, address: Any, value: Any) -> Any:
    if value not in _SCALARS:
        return None
    kind, constraint, _pattern = _SCALARS[value]
    text = f"st.global.{kind} [$0], $1;"
    return _emits(
        types.void, (types.int64, value), lambda builder, *given: _does(builder, text, f"l,{constraint}", *given)
    )


@_instruction
def chase_global(_: Any, address: Any, count: Any) -> Any:
    """`count` dependent 8-byte loads that may hit L1, each word the next address; returns the last (int64)."""
    if not _constants(count):
        return None

    def emit(builder: Any, at: Any, _: Any) -> Any:
        for _i in range(count.literal_value):
            at = _asm(builder, _I64, "ld.global.u64 $0, [$1];", "=l,l", at)
        return at

    return _emits(types.int64, (types.int64, count), emit)


def _stream(load: str) -> Callable[..., Any]:
    def typing(_: Any, address: Any, stride: Any, count: Any, seed: Any) -> Any:
        if not _constants(stride, count):
            return None
        offsets = [i * stride.literal_value for i in range(count.literal_value)]

        def emit(builder: Any, address: Any, _stride: Any, _count: Any, seed: Any) -> Any:
            return _xor(builder, seed, [_words(builder, load, 4, address, "l", offset) for offset in offsets])

        return _emits(types.int32, (types.int64, stride, count, types.int32), emit)

    return typing


# f(address, stride, count, seed) -> seed xor every word of `count` independent 16-byte loads, `stride` bytes apart, all
# issued before the first is used. The plain one may hit L1; cg looks in L2 only. ptxas lifts plain loads of one address
# out of a loop: let the address grow by an argument that is 0.
stream_global = _instruction(_stream("ld.global.v4.u32"))
stream_global_cg = _instruction(_stream("ld.global.cg.v4.u32"))


def _store4(builder: Any, address: Any, offset: int, *words: Any) -> None:
    _does(builder, f"st.global.v4.u32 [$0+{offset}], {{$1, $2, $3, $4}};", "l,r,r,r,r", address, *words)


@_instruction
def copy_global(_: Any, source: Any, target: Any, stride: Any, count: Any) -> Any:
    """`count` 16-byte loads past L1, `stride` bytes apart, then as many stores."""
    if not _constants(stride, count):
        return None
    offsets = [i * stride.literal_value for i in range(count.literal_value)]

    def emit(builder: Any, source: Any, target: Any, _stride: Any, _count: Any) -> None:
        loads = [_words(builder, "ld.global.cg.v4.u32", 4, source, "l", offset) for offset in offsets]
        for offset, words in zip(offsets, loads, strict=True):
            _store4(builder, target, offset, *words)

    return _emits(types.void, (types.int64, types.int64, stride, count), emit)


@_instruction
def fill_global(_: Any, target: Any, stride: Any, count: Any, x: Any, y: Any, z: Any) -> Any:
    """`count` 16-byte stores of {x, y, z, i}, `stride` bytes apart; x, y, z are int32."""
    if not _constants(stride, count):
        return None

    def emit(builder: Any, target: Any, _stride: Any, _count: Any, *xyz: Any) -> None:
        for i in range(count.literal_value):
            _store4(builder, target, i * stride.literal_value, *xyz, _I32(i))

    return _emits(types.void, (types.int64, stride, count) + (types.int32,) * 3, emit)


# Shared memory -------------------------------------------------------------------------------------------------------
#
# Widths are 4, 8 or 16 bytes. Loads are volatile, for ptxas merges plain ones of one address; the SASS is a plain LDS.


@_instruction
def shared_base(_: Any) -> Any:
    """The 32-bit address of the block's dynamic shared memory, 1024-aligned; its size is the launch's."""

    def emit(builder: Any) -> Any:
        arena = builder.module.globals.get(_ARENA)
        if arena is None:
            arena = ir.GlobalVariable(builder.module, ir.ArrayType(_I8, 0), _ARENA, addrspace=3)
            arena.align = 1024
        # Through the generic address, as ptx::shared_base does: a constant base is folded into LDS, and an index chase
        # then has a shift where the other method has its LEA.
        generic = builder.ptrtoint(builder.addrspacecast(arena, ir.ArrayType(_I8, 0).as_pointer()), _I64)
        return builder.trunc(_asm(builder, _I64, "cvta.to.shared.u64 $0, $1;", "=l,l", generic), _I32)

    return _emits(types.int32, (), emit)


@_instruction
def store_shared(_: Any, address: Any, value: Any) -> Any:
    """The int32 `value` to a shared address."""
    text = "st.shared.u32 [$0], $1;"
    return _emits(types.void, (types.int32,) * 2, lambda builder, *given: _does(builder, text, "r,r", *given))


@_instruction
def chase_shared(_: Any, address: Any, width: Any, count: Any) -> Any:
    """`count` dependent loads of `width` bytes, each first word the next address; returns the last (int32)."""
    if not _constants(width, count):
        return None
    kind, words = _SHARED[width.literal_value]

    def emit(builder: Any, at: Any, _width: Any, _count: Any) -> Any:
        for _i in range(count.literal_value):
            at = _words(builder, f"ld.volatile.shared.{kind}", words, at, "r")[0]
        return at

    return _emits(types.int32, (types.int32, width, count), emit)


@_instruction
def chase_shared_index(_: Any, base: Any, index: Any, count: Any) -> Any:
    """`count` dependent loads of the int32 numbered `index` from `base`, each the next index; returns the last."""
    if not _constants(count):
        return None

    def emit(builder: Any, base: Any, at: Any, _: Any) -> Any:
        for _i in range(count.literal_value):
            address = builder.add(base, builder.shl(at, _I32(2)))
            (at,) = _words(builder, "ld.volatile.shared.u32", 1, address, "r")
        return at

    return _emits(types.int32, (types.int32, types.int32, count), emit)


@_instruction
def stream_shared(_: Any, address: Any, width: Any, used: Any, count: Any, seed: Any) -> Any:
    """`seed` xor the first `used` words of each of `count` independent loads of `width` bytes at `address`."""
    if not _constants(width, used, count):
        return None
    kind, words = _SHARED[width.literal_value]

    def emit(builder: Any, address: Any, _width: Any, _used: Any, _count: Any, seed: Any) -> Any:
        loads = [
            _words(builder, f"ld.volatile.shared.{kind}", words, address, "r") for _i in range(count.literal_value)
        ]
        return _xor(builder, seed, [load[: used.literal_value] for load in loads])

    return _emits(types.int32, (types.int32, width, used, count, types.int32), emit)
