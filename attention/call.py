"""A call: the tensors and options that the operator takes, in an order that follows from the features. No torch here.

    smscope::attention_forward(query, key, value, <each feature's operands>, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                               max_seqlen_k, <each feature's arguments>, scale, only, strict, deterministic)

query (B, Hq, Sq, D), key (B, Hkv, Skv, D), value (B, Hkv, Skv, Dv); packed sequences are (1, Hq, Tq, D) and so on, with
cu_seqlens (sequences + 1,), int32: the rows where each begins, and the end of the last.
"""

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from attention.feature import Argument
from attention.features import FEATURES, OPERANDS

if TYPE_CHECKING:
    import torch

STARTS = ("cu_seqlens_q", "cu_seqlens_k")
TENSORS = (*(operand.name for operand in OPERANDS), *STARTS)
ARGUMENTS = (
    Argument("max_seqlen_q", "SymInt", 0),
    Argument("max_seqlen_k", "SymInt", 0),
    *(argument for feature in FEATURES for argument in feature.arguments),
    Argument("scale", "float?", None),
)

if TYPE_CHECKING:

    class _Named(tuple[Any, ...]):
        _fields: tuple[str, ...]

        def __new__(cls, *values: Any, **named: Any) -> Self: ...
        def __getattr__(self, name: str) -> Any: ...
        def _replace(self, **named: Any) -> Self: ...

    class Extras(_Named): ...

    class Options(_Named): ...
else:
    Extras = namedtuple("Extras", TENSORS, defaults=(None,) * len(TENSORS))
    Extras.__doc__ = "The tensors of features, on the device of the query; None where the problem has no such feature."
    Options = namedtuple("Options", [each.name for each in ARGUMENTS], defaults=[each.default for each in ARGUMENTS])
    Options.__doc__ = "The plain arguments, as Python's own: equal calls have equal options."

NO_EXTRAS = Extras()


@dataclass(frozen=True)
class Tensors:
    """What a kernel is given of a call, ours or anybody's."""

    query: "torch.Tensor"
    key: "torch.Tensor"
    value: "torch.Tensor"
    extras: Extras = NO_EXTRAS


class Manner(NamedTuple):
    """How a call wants to be served, apart from what it computes."""

    only: str = ""
    strict: bool = False
    deterministic: bool = False


class Call(NamedTuple):
    query: "torch.Tensor"
    key: "torch.Tensor"
    value: "torch.Tensor"
    extras: Extras = NO_EXTRAS
    options: Options = Options()
    manner: Manner = Manner()

    def arguments(self) -> tuple[Any, ...]:
        """As the operator takes them."""
        return (*self[:3], *self.extras, *self.options, *self.manner)


def call_of(*arguments: Any) -> Call:
    """A call from what the operator's kernels are given: torch leaves out last arguments that have their defaults."""
    tensors, rest = arguments[3 : 3 + len(TENSORS)], arguments[3 + len(TENSORS) :]
    plain, manner = rest[: len(ARGUMENTS)], rest[len(ARGUMENTS) :]
    extras = NO_EXTRAS if all(tensor is None for tensor in tensors) else Extras(*tensors)
    query, key, value = arguments[:3]
    return Call(query, key, value, extras, Options(*plain), Manner(*manner))


def asked_of(options: Options, extras: Extras) -> Mapping[str, Any]:
    """The fields of a problem that features add."""
    return _asked_of(options, tuple([None if each is None else each.dtype for each in extras[: len(OPERANDS)]]))


@lru_cache(maxsize=4096)
def _asked_of(options: Options, given: tuple[Any, ...]) -> Mapping[str, Any]:
    dtypes = {operand.name: dtype for operand, dtype in zip(OPERANDS, given, strict=True)}
    return {name: value for feature in FEATURES for name, value in feature.of_call(options, dtypes).items()}


def _schema() -> str:
    tensors = (f"Tensor? {name}=None" for name in TENSORS)
    return ", ".join((*tensors, *(f"{each.kind} {each.name}={each.default}" for each in ARGUMENTS)))


FORWARD = (
    f"attention_forward(Tensor query, Tensor key, Tensor value, {_schema()}, str only='', bool strict=False, "
    "bool deterministic=False) -> (Tensor out, Tensor lse)"
)
BACKWARD = (
    "attention_backward(Tensor grad_out, Tensor? grad_lse, Tensor query, Tensor key, Tensor value, Tensor out, "
    f"Tensor lse, bool[] wanted, {_schema()}, str only='', bool strict=False, bool deterministic=False) -> "
    f"({', '.join(['Tensor'] * (3 + len(OPERANDS)))})"
)
