"""A problem of a campaign as it is posed: what is asked, lengths that lie on the device, and its class.

In text a problem is a line: class, B, Hq, Hkv, Sq, Skv, D, dtype, and words for what else is asked.

    prefill  4  16  16  4096  4096  128      bf16  causal window=1024
    prefill  4  10  10  4096  4096  192/128  bf16  causal
    packed   0  16  16     0     0  128      bf16  causal lengths=4096+15x256
    decode   4  32   8     1  8192  128      bf16  used=8192+3x100
    features 4  16  16  4096  4096  128      bf16  bias=f32

D/Dv has a head dim of values of its own. Lengths are of queries and keys alike; `used` are the keys that each sequence
has in its slot, from the first on. `mask` is a bool mask, `bias` a float one in the inputs' dtype or in the one that is
named, for all heads. Causality of a rectangle is aligned bottom-right, as flash-attn's: a prompt that follows a cache.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from attention.choose.lengths import Lengths, told
from attention.errors import ProblemError
from attention.problem import AttentionProblem, normalise_dtype

Class = Literal["prefill", "short", "packed", "decode", "features"]
CLASSES: tuple[Class, ...] = get_args(Class)
# Upper ends of queries and keys that are of one class: a token, less than two tiles of rows, less than a wave's, more.
ENDS = ((1, "one"), (128, "few"), (512, "short"), (4096, "medium"))
LONGEST = "long"
# Words by which features are told apart, beside the band's causality.
FEATURES = ("window", "softcap", "mask", "alibi", "sinks", "ranges", "packed")


@dataclass(frozen=True)
class Posed:
    """`lengths` are the rows of each packed sequence, queries and keys alike; none where sequences are not packed.

    `used` are the keys that each sequence uses of its slot; none where all use all. `l2_written`: as before 2026-11-26,
    behind a memset, which is no other problem.
    """

    kind: Class
    problem: AttentionProblem
    lengths: tuple[int, ...] = ()
    used: tuple[int, ...] = ()
    l2_written: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        packed = f" lengths={written(self.lengths)}" if self.lengths else ""
        used = f" used={written(self.used)}" if self.used else ""
        return f"{self.problem}{packed}{used}"

    @cached_property
    def features(self) -> frozenset[str]:
        """Those of FEATURES that it asks for."""
        problem = self.problem
        asked = (problem.window != (-1, -1), problem.softcap > 0, problem.mask != "none", problem.alibi, problem.sinks)
        held = (*asked, problem.ranges, problem.varlen)
        return frozenset(name for name, is_held in zip(FEATURES, held, strict=True) if is_held)

    @cached_property
    def counted(self) -> Lengths:
        """The lengths of its sequences, as the model takes them; none where all have those of the problem."""
        return told(self.problem, self.lengths, self.used)

    @property
    def sizes(self) -> tuple[str, str]:
        """The class of its queries and of its keys."""
        return size_of(self.problem.seq_q), size_of(self.problem.seq_kv)

    @property
    def flops(self) -> float:
        """2 B H Sq Skv (D + Dv), halved where causal; with lengths their sum; with a window, the scores seen."""
        problem = self.problem
        if not (self.lengths or self.used):
            return problem.flops
        each = sum(length * length for length in self.lengths) or problem.seq_q * sum(self.used)
        full = 2.0 * (problem.head_dim + problem.head_dim_v) * problem.heads_q * each
        return full / 2 if problem.causal else full

    @property
    def twin(self) -> tuple[object, ...]:
        """Alike for problems that differ in dtype or grouping alone."""
        problem = self.problem
        what = (problem.batch, problem.heads_q, problem.seq_q, problem.seq_kv, problem.head_dim, problem.head_dim_v)
        lengths, mask = (self.lengths, self.used), (problem.mask, problem.mask_dtype)
        return what, lengths, self.features, mask, problem.edges, problem.alignment, problem.softcap


def size_of(count: int) -> str:
    """The class of so many queries, or keys."""
    return next((name for end, name in ENDS if count <= end), LONGEST)


def written(lengths: tuple[int, ...]) -> str:
    """Lengths in few words: 4096+15x256."""
    runs: list[list[int]] = []
    for length in lengths:
        if runs and runs[-1][1] == length:
            runs[-1][0] += 1
        else:
            runs.append([1, length])
    return "+".join(f"{count}x{length}" if count > 1 else f"{length}" for count, length in runs)


def read_lengths(text: str) -> tuple[int, ...]:
    """The lengths that `written` wrote."""
    found: list[int] = []
    for run in text.split("+"):
        count, _, length = run.rpartition("x")
        found += [int(length)] * int(count or 1)
    return tuple(found)


def parse(line: str) -> Posed:
    """The problem of one line. Raises ProblemError."""
    kind, *sizes, dtype = line.split()[:8]
    words = line.split()[8:]
    if kind not in CLASSES:
        raise ProblemError(f"{kind!r} is no class of problems; use one of {', '.join(CLASSES)}.")
    *others, head_dims = sizes
    return posed(kind, (*map(int, others), *map(int, head_dims.split("/"))), dtype, words)


def posed(kind: Class, sizes: tuple[int, ...], dtype: str, words: Iterable[str]) -> Posed:
    """A problem of sizes (B, Hq, Hkv, Sq, Skv, D) or (..., D, Dv), of which packed sequences have heads and D alone.

    Raises ProblemError for a word that says nothing, and for used keys that a slot does not hold.
    """
    batch, heads_q, heads_kv, seq_q, seq_kv, *head_dims = sizes
    asked: dict[str, Any] = {}
    lengths: tuple[int, ...] = ()
    used: tuple[int, ...] = ()
    for word in words:
        name, _, value = word.partition("=")
        if name == "lengths":
            lengths = read_lengths(value)
        elif name == "used":
            used = read_lengths(value)
            asked["ranges"] = True
        elif name == "window":
            asked["window"] = (int(value), -1)
        elif name == "softcap":
            asked["softcap"] = float(value)
        elif name == "mask":
            asked["mask"] = "bool"
        elif name == "bias":
            asked |= {"mask": "float", "mask_dtype": normalise_dtype(value or dtype)}
        elif name in ("causal", "alibi", "sinks"):
            asked[name] = True
        else:
            raise ProblemError(f"{word!r} says nothing of a problem.")
    if lengths:
        batch, seq_q, seq_kv, total = len(lengths), max(lengths), max(lengths), sum(lengths)
        asked |= {"varlen": True, "tokens_q": total, "tokens_kv": total}
    if used and (len(used) != batch or max(used) > seq_kv):
        raise ProblemError(f"used={written(used)} is of {len(used)} slots, up to {max(used)} keys; there are {batch}.")
    if "causal" in asked or "window" in asked:
        asked["alignment"] = "bottom_right"
    problem = AttentionProblem(
        *(batch, heads_q, heads_kv, seq_q, seq_kv, *head_dims), dtype=dtype, device="cuda", **asked
    )
    return Posed(kind, problem, lengths, used)
