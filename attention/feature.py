"""What a feature of attention is: something that scores, or the softmax, are asked beyond softmax(scale Q K^T) V.

`features/<name>.py` binds FEATURE, and `features/<name>.cuh` beside it is its device code. Both are found because they
are there: the fields of a problem, the arguments of the operator, what a kernel is compiled with and what its launch
holds, the slow path, its gradient, the oracle and the random problems are read off these. No torch here.

Scores pass the features in their order: `change` of all of them, then `hide` of all of them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from attention.errors import ArgumentError, ProblemError

if TYPE_CHECKING:
    import numpy as np

Array = Any  # torch's or NumPy's
AXES = {"b": "batch", "h": "head", "q": "row", "k": "key"}


class Problem(Protocol):
    """An attention.problem.AttentionProblem: sizes, dtype, band and scale, and the fields of every feature by name."""

    def __getattr__(self, name: str) -> Any: ...


@dataclass(frozen=True)
class Word:
    """One thing that may be asked, as refusals, timings and explain() name it.

    `without`: how the nearest calls do without it, in words and as fields of a problem.
    """

    name: str
    asked: Callable[[Problem], bool]
    without: tuple[tuple[str, dict[str, Any]], ...]


@dataclass(frozen=True)
class Argument:
    """A plain argument of the operator: its type in torch's schemas ("bool", "int", "float"), and its default."""

    name: str
    kind: str
    default: Any


@dataclass(frozen=True)
class Operand:
    """A tensor that a call brings: an argument of the operator, a field of Extras, a pointer of a launch.

    axes     of batch, query head, query and key ("bhqk") those that it has, in this order
    leaves   axes in front that a caller may leave out
    stretch  an axis may have size 1, which is read for every index
    holds    "lse": in lse's dtype; "mask": bool, True may be seen, or floats, which are added; "count": int32
    element  of a pointer in device code
    strides  the axes whose strides device code is told, in the order of Launch, and their type; none: contiguous
    """

    name: str
    axes: str
    leaves: str = ""
    stretch: bool = False
    holds: Literal["lse", "mask", "count"] = "lse"
    element: str = "float"
    strides: str = ""
    stride_kind: Literal["int", "long long"] = "int"

    def __post_init__(self) -> None:
        if self.axes != "".join(axis for axis in AXES if axis in self.axes):
            raise ValueError(f"The operand {self.name} has the axes {self.axes!r}; name some of 'bhqk', in this order.")

    @property
    def stride_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}_{AXES[axis]}" for axis in self.strides)


@dataclass(frozen=True)
class At:
    """Where scores (..., queries, keys) lie in a sequence of these lengths: indices (queries, 1) and (keys,).

    Where each sequence uses a part of its rows alone, keys count from the first that is used, and lengths are arrays
    that broadcast to the scores.
    """

    query: Array
    key: Array
    seq_q: int | Array
    seq_kv: int | Array

    @property
    def ahead(self) -> Array:
        """How far right of the diagonal that ends bottom-right each key lies, (queries, keys)."""
        return self.key - self.query - (self.seq_kv - self.seq_q)

    @property
    def unused(self) -> Array | None:
        """True for queries past the end of their sequence, (..., queries, 1): no logit joins their softmax either."""
        return None if isinstance(self.seq_q, int) else self.query >= self.seq_q


@dataclass(frozen=True)
class Define:
    """A switch that device code is compiled with: SOFTCAP, which is kSoftcap there.

    share    of random problems that ask for it
    crowds   what it adds lives in registers, beside whatever else a thread holds
    """

    name: str
    asked: Callable[[Problem], bool]
    share: float
    crowds: bool = True

    @property
    def constant(self) -> str:
        return "k" + self.name.title().replace("_", "")


@dataclass(frozen=True)
class Field:
    """A number of a launch beside pointers and strides of operands: of a problem and its scale_log2.

    scale_log2 is what the kernel multiplies scores by before exp2: log2(e) times the softmax scale, or times the scale
    that a feature gave them (softcap: the cap).
    """

    name: str
    kind: Literal["int", "float"]
    of: Callable[[Problem, float], float]


@dataclass(frozen=True)
class Device:
    """What features/<name>.cuh offers, and what it is told.

    serves   the words that it knows
    changes  it has change_<name>(scores, launch, work, row, column)
    hides    a score that it changed may be -inf
    one_define  no two of its defines are asked together
    row_bytes   it has <Name>Ahead<Rows, Keys>(launch, work, row, to), which brings what it reads beside the scores of a
                warp's rows to shared memory, a tile of keys ahead, by fetch<Whole>(launch, work, key); change_<name> is
                then told where. How many bytes lie from a row to the next there, of a problem and the keys of a tile.
                One feature may do so
    """

    serves: tuple[str, ...]
    defines: tuple[Define, ...]
    fields: tuple[Field, ...] = ()
    changes: bool = False
    hides: bool = False
    one_define: bool = False
    row_bytes: Callable[[Problem, int], int] | None = None


class Feature:
    """What a feature's file overrides: data as attributes, formulas as methods. `name` is the file's.

    order      in which features are listed, and scores pass them; a bias goes behind softcap's 20, and whatever changes
               a score before the mask's 50, whose device code hides it where the others change it
    words      what may be asked
    fields     of AttentionProblem, and their defaults
    arguments  of the operator, plain ones
    operands   of the operator, tensors; a flash function takes each by its own name
    logit      its one operand is one more logit of each row's softmax, without a value; in device code
               logit_<name>(launch, work)
    device     what its device code offers; None: no kernel of ours has it
    """

    name: str = ""
    order: int
    words: tuple[Word, ...]
    fields: tuple[tuple[str, Any], ...]
    arguments: tuple[Argument, ...] = ()
    operands: tuple[Operand, ...] = ()
    logit: bool = False
    device: Device | None = None

    def of_call(self, options: Any, given: dict[str, Any]) -> dict[str, Any]:
        """Fields of the problem that a call poses: of the operator's options, and the dtypes of operands by name."""
        raise NotImplementedError

    def checked(self, problem: Problem) -> dict[str, Any]:
        """Fields in the one way in which they are written. Raises ProblemError."""
        return {}

    def told(self, problem: Problem) -> tuple[str, ...]:
        """What str() of a problem says of it."""
        return ()

    def where(self, at: At, *operands: Array) -> At:
        """Where scores lie, as every other method is told, once operands say which rows of a sequence are used."""
        return at

    def oracle(self, xp: Any, scores: Array, at: At, asked: Any, *operands: Array) -> Array:
        """Scores (..., heads, queries, keys) as they should be changed, in the namespace `xp`: torch's or NumPy's.

        `asked` has the fields. Operands broadcast to the scores; of a call that does not bring them they are None.
        """
        return scores

    def oracle_hides(self, at: At, asked: Any, *operands: Array) -> Array | None:
        """True where a key should be hidden; None where none is."""
        return None

    def change(self, scores: Array, at: At, problem: Problem, *operands: Array) -> tuple[Array, Any]:
        """In torch: scores, and whatever the gradient needs. Operands broadcast to the scores, or are None.

        What is returned as scores is overwritten later: the gradient may need those that were given, never these.
        """
        return scores, None

    def gradient(self, d_scores: Array, kept: Any, at: At, problem: Problem, *operands: Array) -> Array:
        """In torch: of the scores that `change` was given, of those that it gave."""
        return d_scores

    def operand_gradients(
        self, d_scores: Array, kept: Any, at: At, problem: Problem, *operands: Array
    ) -> tuple[Array | None, ...]:
        """In torch: of each operand, as large as the scores, of the gradient of the scores that `change` gave.

        Asked only of a call that brings an operand which wants a gradient.
        """
        return (None,) * len(operands)

    def hide(self, at: At, problem: Problem, *operands: Array) -> Array | None:
        """In torch: True where a key is hidden; None where none is."""
        return None

    def scale(self, problem: Problem) -> float | None:
        """What device code multiplies scores by behind it, where that is no longer the softmax scale."""
        return None

    def refuses(self, problem: Problem) -> str | None:
        """Why its device code cannot serve a problem, in a sentence without a full stop, or None."""
        return None

    def drawn(self, rng: "np.random.Generator", asked: frozenset[str]) -> dict[str, Any]:
        """Fields of a random problem that asks for the defines named."""
        return {}

    def values(self, draw: Any, operand: Operand, shape: tuple[int, ...]) -> Array:
        """Random values of an operand, float32, bool or int32; None where a call may do without it.

        `draw` has normal(*shape), uniform(*shape), density, and the lengths of each sequence as queries and keys.
        """
        return draw.normal(*shape)


def finite(name: str, given: Any, wanted: str) -> float:
    """A finite float. Raises ArgumentError, ProblemError, which say what is `wanted`."""
    try:
        number = float(given)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} is {given!r}; give {wanted}.") from None
    except OverflowError:  # a Python integer beyond every float
        number = math.inf
    if not math.isfinite(number):
        raise ProblemError(f"{name} is {number}; give {wanted}.")
    return number
