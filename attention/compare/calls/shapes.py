"""100 calls, drawn by a seed: the same on every machine and every Python."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, TypeVar, get_args

from attention.problem import AttentionProblem

Kind = Literal["decode", "tiny", "half precision", "causal prefill", "cross attention"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SEED = 2026
EACH = 20
LARGEST_FLOPS = 2e10  # of one call: some 0.1 s on a few cores
LARGEST_CACHE_BYTES = 128 * 2**20
HEADS = ((8, 8), (12, 12), (16, 4), (32, 8))
HEAD_DIMS = (64, 80, 96, 128)
Item = TypeVar("Item")


def drawn(seed: int = SEED) -> list[tuple[Kind, AttentionProblem]]:
    """EACH calls of each kind."""
    draw = _Draw(seed)
    return [(kind, draw.problem(kind)) for kind in KINDS for _ in range(EACH)]


class _Draw:
    """Draws with random() alone, the one method whose sequence Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def one(self, items: Sequence[Item]) -> Item:
        return items[int(self._random.random() * len(items))]

    def whole(self, least: int, most: int) -> int:
        """Each number as often."""
        return least + int(self._random.random() * (most + 1 - least))

    def length(self, least: int, most: int) -> int:
        """As often between 16 and 32 as between 1024 and 2048."""
        return int(least * ((most + 1) / least) ** self._random.random())

    def problem(self, kind: Kind) -> AttentionProblem:
        """The next one that is not too large for a few seconds of timing."""
        while True:
            found = _KINDS[kind](self)
            cache = found.batch * found.heads_kv * found.seq_kv * (found.head_dim + found.head_dim_v)
            if found.flops <= LARGEST_FLOPS and cache * found.element_bytes <= LARGEST_CACHE_BYTES:
                return found


def _decode(draw: _Draw) -> AttentionProblem:
    heads = draw.one(HEADS)
    return AttentionProblem(draw.one((1, 1, 2, 8)), *heads, 1, draw.length(16, 16384), draw.one((64, 128)))


def _tiny(draw: _Draw) -> AttentionProblem:
    heads, queries = draw.one((1, 2, 4, 8)), draw.whole(1, 64)
    keys = draw.one((queries, draw.whole(1, 64)))
    causal = draw.one((False, True))
    return AttentionProblem(draw.one((1, 2, 4)), heads, heads, queries, keys, draw.one((16, 32, 64)), causal=causal)


def _half(draw: _Draw) -> AttentionProblem:
    heads, length = draw.one(HEADS), draw.length(32, 2048)
    dtype, causal = draw.one(("float16", "bfloat16")), draw.one((False, True))
    queries = draw.one((length, length, 1))
    return AttentionProblem(
        draw.one((1, 2)), *heads, queries, length, draw.one((64, 128)), dtype=dtype, causal=causal and queries > 1
    )


def _prefill(draw: _Draw) -> AttentionProblem:
    heads, length = draw.one(HEADS), draw.length(64, 4096)
    return AttentionProblem(draw.one((1, 1, 2)), *heads, length, length, draw.one(HEAD_DIMS), causal=True)


def _cross(draw: _Draw) -> AttentionProblem:
    heads = draw.one(HEADS)
    queries, keys = draw.length(16, 4096), draw.length(16, 4096)
    return AttentionProblem(draw.one((1, 2)), *heads, queries, keys, draw.one(HEAD_DIMS))


_KINDS: dict[Kind, Callable[[_Draw], AttentionProblem]] = {
    "decode": _decode,
    "tiny": _tiny,
    "half precision": _half,
    "causal prefill": _prefill,
    "cross attention": _cross,
}
