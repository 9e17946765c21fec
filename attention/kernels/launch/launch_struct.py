"""The one argument of a kernel, described once: a ctypes structure for Python, and the same as C++ text for NVRTC.

A kernel states the fields that are its own. Those that every kernel has lie here, and those of features are read off
attention.features. No torch here.
"""

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from attention.feature import Define, Feature
from attention.features import FEATURES

_KINDS: dict[str, Any] = {
    "ptx::TensorMap": ctypes.c_uint8 * 128,
    "long long": ctypes.c_longlong,
    "int": ctypes.c_int,
    "float": ctypes.c_float,
}
TENSOR_MAP_ALIGNMENT = 64  # bytes, and so that of a structure that holds one


@dataclass(frozen=True)
class Member:
    """A field of Launch: its type in C++, its name, and what a reader should know of it."""

    kind: str
    name: str
    says: str = ""


def members(kind: str, names: str, says: str = "") -> tuple[Member, ...]:
    """Several of one type; what they say stands beside the first."""
    first, *others = names.split()
    return (Member(kind, first, says), *(Member(kind, name) for name in others))


LSE = Member("float*", "lse", "(batch, heads, queries), or (heads, all queries) where packed; natural logarithm")
SIZES = members("int", "batch heads heads_per_kv queries keys head_dim", "where packed, rows of all that tensors hold")
SCHEDULE = members("int", "row_tiles tiles section", "of attention/kernels/common/work.cuh")
LATENESS = members("int", "k_late v_late", "1 where every other head's rows begin inside of a sector (common/lead.cuh)")
SCALE = Member("float", "scale_log2", "of scores as features left them")
SCHEDULE_ORDER = 15  # behind the band's fields, by which tiles are dealt
# Whose fields lie among the others, where timed and verified builds read them. Those of any further feature lie behind
# all of them, so that it moves no offset and the builds without it keep their machine code.
AMONG_OTHERS = ("band", "softcap", "alibi", "mask", "sinks")
PLACED = tuple(each for each in FEATURES if each.device and each.name in AMONG_OTHERS)
EARLY = tuple(each for each in PLACED if each.order <= SCHEDULE_ORDER)
LATE = tuple(each for each in PLACED if each.order > SCHEDULE_ORDER)
FURTHER = tuple(each for each in FEATURES if each.device and each.name not in AMONG_OTHERS)


def of_kernel(
    head: tuple[Member, ...],
    scales: tuple[Member, ...] = (),
    tail: tuple[Member, ...] = (),
    last: tuple[Member, ...] = (),
) -> tuple[Member, ...]:
    """All fields: a kernel's own pointers and strides, what all have, its own numbers beside the scale, and at last.

    `last`: behind those of further features too, where they move none.
    """
    starts = (
        Member("const int*", "query_starts", "of each sequence and the end of the last; null unless VARLEN"),
        Member("const int*", "key_starts"),
    )
    addresses = (*starts, *_pointers(PLACED), *_strides("long long", PLACED))
    integers = (*SIZES, *_integers(EARLY), *SCHEDULE, *_integers(LATE))
    further = (*_pointers(FURTHER), *_strides("long long", FURTHER), *_integers(FURTHER), *_fields("float", FURTHER))
    return (*head, *addresses, *integers, SCALE, *scales, *_fields("float", PLACED), *tail, *further, *last)


def _pointers(features: Iterable[Feature]) -> Iterator[Member]:
    for feature in features:
        for operand in feature.operands:
            yield Member(f"const {operand.element}*", operand.name, f"of {feature.name}: ({', '.join(operand.axes)})")


def _strides(kind: str, features: Iterable[Feature]) -> Iterator[Member]:
    for feature in features:
        for operand in feature.operands:
            yield from (Member(kind, name) for name in operand.stride_names if operand.stride_kind == kind)


def _fields(kind: str, features: Iterable[Feature]) -> Iterator[Member]:
    for feature in features:
        if feature.device:
            yield from (Member(kind, each.name) for each in feature.device.fields if each.kind == kind)


def _integers(features: Iterable[Feature]) -> Iterator[Member]:
    for feature in features:
        yield from _fields("int", [feature])
        yield from _strides("int", [feature])


def structure(fields: tuple[Member, ...]) -> type[ctypes.Structure]:
    """The structure; a tensor map lies, and it ends, at a multiple of the map's alignment, as in C++."""
    types: list[tuple[str, Any]] = []
    for each in fields:
        if each.kind == "ptx::TensorMap":
            _pad(types, f"before_{each.name}")
        types.append((each.name, ctypes.c_void_p if each.kind.endswith("*") else _KINDS[each.kind]))
    if any(each.kind == "ptx::TensorMap" for each in fields):
        _pad(types, "padding")
    return type("Launch", (ctypes.Structure,), {"_fields_": types})


def _pad(types: list[tuple[str, Any]], name: str) -> None:
    """Bytes up to the next multiple of a tensor map's alignment, where there is not one already."""
    if not types:
        return
    last = getattr(type("Unpadded", (ctypes.Structure,), {"_fields_": types}), types[-1][0])
    if missing := -(last.offset + last.size) % TENSOR_MAP_ALIGNMENT:
        types.append((name, ctypes.c_uint8 * missing))


def launch_text(fields: tuple[Member, ...]) -> str:
    """launch.cuh: what is compiled, as constants, and Launch."""
    defines = [define for feature in FEATURES if feature.device for define in feature.device.defines]
    changing = [feature.device for feature in FEATURES if feature.device and feature.device.changes]
    hiding = [device for device in changing if device.hides]
    constants = (
        *((define.constant, define.name) for define in defines),
        ("kCrowded", _any([define for define in defines if define.crowds])),
        ("kChanged", _any([define for device in changing for define in device.defines])),
        ("kHiding", _any([define for device in hiding for define in device.defines])),
    )
    lines = [f"constexpr bool {name} = {value};" for name, value in constants]
    lines += ["#ifndef AHEAD_ROW", "#define AHEAD_ROW 0", "#endif", f"constexpr int kAheadRow = AHEAD_ROW;{AHEAD}"]
    lines += ["struct Launch {", *(f"  {each.kind} {each.name};{_comment(each)}" for each in fields), "};"]
    headers = ['#include "ptx/tma.cuh"'] if any(each.kind == "ptx::TensorMap" for each in fields) else []
    return "\n".join(("#pragma once", *headers, *lines, ""))


GIVEN = "const Launch& launch, const Work& work"
AHEAD = "  // bytes of shared memory a row of what features read ahead of scores; 0: they do not"


def features_text() -> str:
    """features.cuh: the device code of every feature, and each score's way through them."""
    devices = [(feature.name, feature.device) for feature in FEATURES if feature.device]
    lines = ["#pragma once", '#include "online_softmax.cuh"', '#include "work.cuh"']
    lines += [f'#include "features/{name}.cuh"' for name, _ in devices]
    lines += [
        "template <class Scores>",
        f"__device__ __forceinline__ void change(Scores& s, {GIVEN}, int row, int column, unsigned ahead = 0) {{",
    ]
    for name, device in devices:
        if device.changes:
            told = "launch, work, row, column" + (", ahead" if device.row_bytes else "")
            lines.append(f"  if constexpr ({_any(list(device.defines))}) change_{name}(s, {told});")
    lines += ["}"]
    lines += [
        f"template <int Rows, int Keys>\nusing Ahead = {name.title()}Ahead<Rows, Keys>;"
        for name, device in devices
        if device.row_bytes
    ]
    logits = [feature for feature in FEATURES if feature.device and feature.logit]
    asked = [_any(list(feature.device.defines)) for feature in logits if feature.device]
    lines += [f"constexpr bool kLogit = {' || '.join(asked) or 'false'};"]
    lines += [f"__device__ __forceinline__ float logit({GIVEN}) {{"]
    lines += [
        f"  if constexpr ({name}) return logit_{each.name}(launch, work);"
        for name, each in zip(asked, logits, strict=True)
    ]
    return "\n".join((*lines, "  return 0.f;", "}", ""))


def _any(defines: list[Define]) -> str:
    return " || ".join(define.constant for define in defines) or "false"


def _comment(member: Member) -> str:
    return f"  // {member.says}" if member.says else ""
