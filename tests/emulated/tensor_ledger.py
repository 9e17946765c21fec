"""The tensor memory of one block of the sm100a forward as a ledger, from a trace: what holds which columns, and when.

Which scores, P or outputs an instruction is about follows from its role and how many of its kind that role has issued
before, never from its columns: so that columns which two of them share by mistake are two entries that overlap.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from numpy.typing import NDArray

from attention.kernels.sm100a.forward.tensor_memory.arguments import Shape
from microbench.emulator.tensor_trace import ALLOC, DEALLOC, LOAD, OPERAND, PRODUCT, STORE

SCORES, WEIGHTS, OUTPUTS = "scores", "P", "outputs"
GROUPS = 8  # of sixteen lanes; a warp reaches two
PRODUCT_DEPTH = 16  # keys or dims of one product
LOADED, PIECE = 32, 32  # columns that the softmax, and the last load of outputs, takes at once


@dataclass
class Life:
    """Of one thing in sixteen lanes: its columns, and the places in the trace of its first and last instruction."""

    what: str
    number: int  # of its turn; outputs: of its query tile, in order of their beginning
    group: int
    columns: set[int] = field(default_factory=set)
    begins: int = -1
    ends: int = -1

    def touched(self, at: int, columns: range) -> None:
        self.columns |= set(columns)
        self.begins = at if self.begins < 0 else self.begins
        self.ends = at


@dataclass(frozen=True)
class Ledger:
    """Lives by what, number and lanes; and the columns that are allocated behind each instruction."""

    lives: dict[tuple[str, int, int], Life]
    allocated: list[set[int]]
    strays: list[int]  # places of accesses to what is not allocated
    corrections: list[tuple[int, int, set[int]]]  # place, lanes and columns of each move that rescales outputs

    def of(self, what: str) -> list[Life]:
        return [life for life in self.lives.values() if life.what == what]

    def clashes(self) -> Iterator[tuple[Life, Life]]:
        """Two that have columns of the same lanes at the same time."""
        for group in range(GROUPS):
            here = sorted((life for life in self.lives.values() if life.group == group), key=lambda life: life.begins)
            for first, second in combinations(here, 2):
                if second.begins <= first.ends and first.columns & second.columns:
                    yield first, second


def ledger_of(rows: NDArray[Any], shape: Shape) -> Ledger:
    """Of the trace of one block."""
    reader, made, held = _Reader(shape), Ledger({}, [], [], []), set[int]()
    for at, row in enumerate(rows):
        columns = range(int(row["column"]), int(row["column"] + row["columns"]))
        groups = [group for group in range(GROUPS) if int(row["groups"]) >> group & 1]
        if row["kind"] == ALLOC:
            held = held | set(columns)
        elif row["kind"] == DEALLOC:
            held = held - set(columns)
        else:
            made.strays.extend([] if held.issuperset(columns) else [at])
            about = reader.about(row)
            for group in groups:
                if about is None:
                    made.corrections.append((at, group, set(columns)))
                else:
                    made.lives.setdefault((*about, group), Life(*about, group)).touched(at, columns)
        made.allocated.append(held)
    return made


class _Reader:
    """Counts what each role has issued: products by what they multiply, moves by warp."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._counts: dict[tuple[str, int], int] = {}
        self._value_product = False  # its operand stands before it
        self._begun = -1  # the last outputs that began
        self._of_query_tile: dict[int, int] = {}  # outputs that products add to now

    def _next(self, name: str, warp: int, steps: int) -> int:
        """The number of a thing that takes so many steps of one kind by one warp."""
        count = self._counts.get((name, warp), 0)
        self._counts[name, warp] = count + 1
        return count // steps

    def about(self, row: NDArray[Any]) -> tuple[str, int] | None:
        """What an access is about; None of the correction's, of which the data decide how many there are."""
        kind, warp, shape = int(row["kind"]), int(row["warp"]), self.shape
        softmax = warp < 4 * shape.query_tiles
        if kind == OPERAND:
            self._value_product = True
            return WEIGHTS, self._next("operand", 0, shape.tile_keys // PRODUCT_DEPTH)
        if kind == PRODUCT and not self._value_product:
            return SCORES, self._next("scores", 0, shape.head_dim // PRODUCT_DEPTH)
        if kind == PRODUCT:
            self._value_product = False
            query_tile = self._next("values", 0, shape.tile_keys // PRODUCT_DEPTH) % shape.query_tiles
            if not row["adds"]:
                self._begun += 1
                self._of_query_tile[query_tile] = self._begun
            return OUTPUTS, self._of_query_tile[query_tile]
        if softmax:
            parts = shape.tile_keys // LOADED
            turn = self._next("load" if kind == LOAD else "store", warp, parts) * shape.query_tiles + warp // 4
            return SCORES if kind == LOAD else WEIGHTS, turn
        if kind == LOAD and row["columns"] == PIECE:
            return OUTPUTS, self._next("piece", warp, shape.value_dim // PIECE)
        assert kind in (LOAD, STORE)
        return None
