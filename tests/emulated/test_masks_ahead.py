"""Masks that a kernel brings to shared memory ahead of scores: by TMA, and beside ranges by lanes, however they lie.

Each mistake that is planted in the lanes' way is found; those in the other's are in test_mask_boxes.py.
"""

import math
import re
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
import torch

from attention.call import Extras
from attention.oracle.reference import compare
from attention.problem import AttentionProblem
from attention.variant import by_path
from attention.verify.emulated import Emulated, emulating
from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_sm90a import PATH, config_of, run, without_turns

HEADS, QUERIES = 2, 90  # of a tile, some warps have no rows
# Rows of these keys begin at whole 16 bytes, at whole 4 where numbers have 8 or 16 bits, and anywhere.
KEYS = {"16 bytes": 144, "4 bytes": 140, "any": 133}
SEEN = {
    "bool": {"causal": True, "window": (40, -1)},
    "bfloat16": {},
    "float16": {"causal": True},
    "float32": {"window": (-1, 30)},
}


def laid(mask: torch.Tensor, layout: str) -> torch.Tensor:
    """The mask (1, heads, queries, keys) as it lies in memory, which has not an element more behind its last."""
    heads, queries, keys = mask.shape[1:]
    if layout == "padded rows":
        held = mask.new_zeros(heads * queries * 144 - (144 - keys))
        placed = held.as_strided(mask.shape, (held.numel(), queries * 144, 144, 1))
        return placed.copy_(mask)
    if layout == "begins late":
        return torch.cat([mask.new_zeros(1), mask.flatten()])[1:].view(mask.shape)
    if layout == "keys are rows":
        return mask.mT.contiguous().mT
    index = {"one row": (..., slice(0, 1), slice(None)), "one key": (..., slice(0, 1)), "one head": (0, slice(0, 1))}
    small = mask[index[layout]] if layout in index else mask
    return small.contiguous().expand(mask.shape)


LAYOUTS = (
    *((layout, 144) for layout in ("whole", "one row", "one head", "one key", "keys are rows", "begins late")),
    *(("whole", keys) for keys in (140, 133)),
    *(("padded rows", keys) for keys in (133, 140)),
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("layout", "keys"), LAYOUTS)
@pytest.mark.parametrize("kind", SEEN)
def test_a_mask_is_read_however_it_lies(emulator: None, kind: str, layout: str, keys: int, mode: Mode) -> None:
    forward = replace(by_path(PATH).load(), bring=lambda extras: extras)
    given = require_right(forward, kind, layout, keys, mode, ranges=True)
    assert given.brought is given.mask


@pytest.mark.parametrize("ranges", (False, True))
@pytest.mark.parametrize(("layout", "keys"), LAYOUTS)
@pytest.mark.parametrize("kind", SEEN)
def test_a_launch_brings_rows_at_whole_16_bytes(
    emulator: None, kind: str, layout: str, keys: int, ranges: bool
) -> None:
    """Or at whole 4 beside ranges, those of a mask of its own for each head."""
    given = require_right(by_path(PATH).load(), kind, layout, keys, "lazy", ranges=ranges)
    may_stay = ranges and layout in ("whole", "begins late", "padded rows") and given.brought is given.mask
    element, (_, *steps, of_key) = given.brought.element_size(), given.brought.stride()
    assert of_key == 1
    assert not any(
        place % (4 if may_stay else 16) for place in (given.brought.data_ptr(), *(element * n for n in steps))
    )


class Given(NamedTuple):
    """The mask of a call, and what its kernel was given."""

    mask: torch.Tensor
    brought: torch.Tensor
    in_tiles: bool


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", ("one head", "one row", "whole"))
def test_keys_of_a_mask_in_float32_come_in_tiles_where_heads_share_it(emulator: None, layout: str, mode: Mode) -> None:
    """As an axis of TMA's, of keys in whole tiles; a mask of its own for each head does not."""
    given = require_right(by_path(PATH).load(), "float32", layout, 192, mode, late=True)
    assert given.in_tiles == (layout == "one head")


# Of value dim 64 outputs are rescaled at every tile; of 128 two warpgroups hold a mask's numbers while scores are
# multiplied, three do not.
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("warpgroups", (2, 3))
@pytest.mark.parametrize("kind", SEEN)
def test_a_mask_is_right_where_outputs_are_rescaled_seldom(
    emulator: None, kind: str, warpgroups: int, mode: Mode
) -> None:
    """Most rows see no key before their last tile, and some there for the first time one that is far below 0."""
    require_right(by_path(PATH).load(), kind, "whole", 144, mode, dim=128, warpgroups=warpgroups, late=True)


def require_right(
    forward: Any,
    kind: str,
    layout: str,
    keys: int,
    mode: Mode,
    *,
    ranges: bool = False,
    dim: int = 64,
    warpgroups: int = 2,
    late: bool = False,
) -> Given:
    random, dtype = torch.Generator().manual_seed(1), "bfloat16" if kind == "bfloat16" else "float16"
    fields = {"mask": "bool"} if kind == "bool" else {"mask": "float", "mask_dtype": kind}
    rows = QUERIES if warpgroups == 2 else QUERIES + 64
    seen = {} if late else SEEN[kind]
    problem = AttentionProblem(
        1, HEADS, 1, rows, keys, dim, dtype=dtype, device="cuda", ranges=ranges, **fields, **seen
    )
    q, k, v = (
        torch.randn(1, heads, count, dim, generator=random).to(getattr(torch, dtype))
        for heads, count in ((HEADS, rows), (1, keys), (1, keys))
    )
    bias = torch.randn(1, HEADS, rows, keys, generator=random).mul(3)
    bias[torch.rand(bias.shape, generator=random) < 0.1] = -math.inf
    if late:
        bias[:, :, 1::3, 20:] = -math.inf
        bias[:, :, 1::6] -= 0 if kind == "bool" else 3000
    mask = laid(bias > 0 if kind == "bool" else bias.to(getattr(torch, kind)), layout)
    with (
        emulating(mode) as machine,
        patch.object(Emulated, "launch", autospec=True, side_effect=Emulated.launch) as met,
    ):
        given = Extras(mask=mask, seqused_k=torch.tensor([keys], dtype=torch.int32) if ranges else None)
        out, _ = forward(q, k, v, problem, config_of(64, warpgroups), given)
    wanted, low = (attended(problem, q, k, v, mask, kind) for kind in (torch.float64, q.dtype))
    assert compare(out.float().numpy(), wanted.double().numpy(), low.double().numpy(), dtype).ok
    (_, frame, _, extras) = met.call_args.args
    assert met.call_args.args[0] is machine and frame.argument.mask == extras.mask.data_ptr()
    return Given(mask, extras.mask, bool(frame.argument.mask_in_tiles))


def attended(
    problem: AttentionProblem, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, kind: torch.dtype
) -> torch.Tensor:
    """Attention with products in `kind`; a row that sees nothing is zeros."""
    exact = torch.promote_types(kind, torch.float32)
    scores = (q.to(kind) @ k.to(kind).mT).to(exact) * problem.softmax_scale
    ahead = torch.arange(problem.seq_kv) - torch.arange(problem.seq_q)[:, None]
    edges = problem.edges
    hidden = ahead > (problem.seq_kv if edges.right is None else edges.right)
    hidden = hidden | (ahead < (-problem.seq_q if edges.left is None else edges.left))
    if mask.dtype == torch.bool:
        hidden = hidden | ~mask
    else:
        scores = scores + mask.to(exact)
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1).nan_to_num(0.0)
    return weights.to(kind) @ v.to(kind)


FILE, AHEAD, READ, WAIT = "features/mask.cuh", "struct MaskAhead", "void each_two(", "void wait() const"
FLOATS = ForwardCase(seq_q=QUERIES, mask="bias")
CASES = {"floats": FLOATS, "bytes": replace(FLOATS, mask="full")}
RACE, OUTSIDE, UNALIGNED = "race: ", "out of bounds: ", "cp.async: global address .* is not a multiple of "
ALL = tuple(KEYS)
CHUNKS, WORDS, ONES = ((way,) for way in ALL)
BUGS = {
    "copies are not waited for": (CHUNKS + WORDS, Bug(FILE, WAIT, "ptx::cp_async_wait<0>();", says=RACE)),
    "copies of other lanes are not waited for": (ALL, Bug(FILE, WAIT, "__syncwarp();", says=RACE)),
    "every warp has the same rows": (
        ALL,
        Bug("mask_rows.cuh", "unsigned rows(", "warp()", "0", says=RACE),
    ),
    "the tile that was read comes again": (
        ALL,
        Bug("consume.cuh", "adjust<Masked>(work, row, tile);", "tile - 1", "tile"),
    ),
    "no tile is brought behind the first": (
        ALL,
        Bug("consume.cuh", "bool run(", "if (tile > least) fetch<true>(work, tile - 1);"),
    ),
    "keys beyond the last are read by chunks": (
        CHUNKS,
        Bug(FILE, "void bring_chunks(", "max(0, min(16, left - 16 * at))", "16", says=OUTSIDE),
    ),
    "rows beyond the last are read by chunks": (
        CHUNKS,
        Bug(FILE, "void bring_chunks(", "below >= down", "true", says=OUTSIDE),
    ),
    "rows beyond the last are read of the first tile": (
        CHUNKS,
        Bug(FILE, "void bring_chunks(", "below < down", "false", says=OUTSIDE),
    ),
    "keys beyond the last are read by words": (
        WORDS,
        Bug(FILE, "void bring_words(", "min(at + lane, last)", "at + lane", says=OUTSIDE),
    ),
    "rows beyond the last are read by words": (
        WORDS,
        Bug(FILE, "void bring_words(", "max(0, below)", "1 << 20", says=OUTSIDE),
    ),
    "keys beyond the last are read one by one": (
        ONES,
        Bug(FILE, "unsigned word_of(", "min(key, last)", "key", says=OUTSIDE),
    ),
    "keys of a word are the first one's": (ONES, Bug(FILE, "unsigned word_of(", "key + i <= last", "false")),
    "rows at whole 4 bytes are brought by 16": (
        WORDS,
        Bug(FILE, AHEAD, "places % 16 == 0", "true", says=UNALIGNED),
    ),
    "rows anywhere are brought by 4": (
        ONES,
        Bug(FILE, AHEAD, "(places | work.keys * kMaskBytes) % 4 == 0", "true", says=UNALIGNED),
    ),
}
OF_KIND = {
    "floats": {"lower rows are the upper ones'": (ALL, Bug(FILE, READ, "lane % 16", "lane % 8"))},
    "bytes": {
        "lower rows are the upper ones'": (ALL, Bug(FILE, READ, "Scores::row(i) * kAheadRow", "0")),
        # Lanes that read by ldmatrix read together.
        "rows that are being read are overwritten": (ALL, Bug(FILE, AHEAD, "__syncwarp();", says=RACE)),
    },
}
EVERY = {kind: {**BUGS, **OF_KIND[kind]} for kind in CASES}
PLANTED = [(kind, name, way) for kind, bugs in EVERY.items() for name, (ways, _) in bugs.items() for way in ways]


@cache
def kernel(kind: str) -> Kernel:
    """All mistakes in one build, whose warpgroups take no turns: a barrier would order what a warp has to."""
    made = Kernel(PATH, without_turns(config_of(64)), replace(CASES[kind].problem, ranges=True))
    return planted(made, "forward_sm90a.cu", tuple(bug for _, bug in EVERY[kind].values()))


def found(kind: str, way: str, mode: Mode, number: int) -> str:
    return outcome(run, kernel(kind), mode, replace(CASES[kind], seq_kv=KEYS[way]), number, blocks=1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", KEYS)
@pytest.mark.parametrize("kind", CASES)
def test_without_a_mistake_every_row_is_right(emulator: None, kind: str, way: str, mode: Mode) -> None:
    assert not found(kind, way, mode, 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "name", "way"), PLANTED)
def test_a_planted_mistake_is_found(emulator: None, kind: str, name: str, way: str, mode: Mode) -> None:
    number = 1 + list(EVERY[kind]).index(name)
    assert re.search(EVERY[kind][name][1].says, found(kind, way, mode, number))
