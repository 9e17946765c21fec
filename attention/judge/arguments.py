"""Plain arguments as callers give them: Python's, NumPy's, tensors of no dimension, and None. No torch here.

What comes out is Python's own, so that a call is judged once for each value, whatever it came in.
"""

from operator import index
from typing import Any

from attention.errors import ArgumentError, kind_of

OPEN = (-1, -1)  # the window of every key, which most calls have
WORDS = (str, bytes, bytearray)  # float() would read them


def number(name: str, given: Any) -> float:
    """A float, of anything that is one number, as torch's own functions take it. Raises ArgumentError.

    A tensor must have no dimensions, and no gradient, which would be lost. One on a GPU waits for the device.
    """
    if type(given) is float:
        return given
    if isinstance(given, WORDS) or _dimensions(given) > 0 or getattr(given, "requires_grad", False):
        raise ArgumentError(f"{name} is {_described(given)}; pass a number.")
    try:
        return float(given)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} is {_described(given)}; pass a number.") from None


def require_arrays(**given: Any) -> None:
    """Raise ArgumentError for what has neither shape nor dtype: tensors and arrays have both."""
    for name, value in given.items():
        if not (hasattr(value, "shape") and hasattr(value, "dtype")):
            raise ArgumentError(f"{name} is {kind_of(value)}; pass a tensor or an array.")


def flag(name: str, given: Any) -> bool:
    """True or False, of a bool, a number, or None, which is False: as flash-attn's binding reads it.

    Raises ArgumentError for everything else: a word is always true, and never meant so.
    """
    if type(given) is bool:
        return given
    single = given is None or (hasattr(given, "__bool__") and not _dimensions(given))
    if not single or isinstance(given, WORDS):
        raise ArgumentError(f"{name} is {_described(given)}; pass True or False.")
    return bool(given)


def require_bools(**flags: Any) -> None:
    """Raise ArgumentError for a flag that is no bool: torch takes no integer for one either."""
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ArgumentError(f"{name} is {kind_of(value)}; pass True or False.")


def whole(name: str, given: Any, wanted: str) -> int:
    """An int, of a Python or NumPy integer or an integer tensor. Raises ArgumentError, which says what is `wanted`."""
    if type(given) is int:
        return given
    try:
        if _dimensions(given) > 0:
            raise TypeError
        # Torch's compiler reads a tensor's number by no other name than item() (2.11), and index() would fix its value.
        value = given.item() if hasattr(given, "item") else given
        if isinstance(value, bool):
            raise TypeError
        return value if type(value) is int else index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {_described(given)}; pass {wanted}.") from None


def edges(window_size: Any) -> tuple[int, int]:
    """Keys left and right of the diagonal, -1 for all: None is all, as a side and as a whole. Raises ArgumentError."""
    if window_size is None:
        return OPEN
    wanted = "two whole numbers, keys to the left and right, -1 for all"
    try:
        left, right = window_size
    except (TypeError, ValueError):
        raise ArgumentError(f"window_size is {window_size!r}; pass {wanted}.") from None
    name = "A side of window_size"
    return (
        -1 if left is None else whole(name, left, f"window_size as {wanted}"),
        -1 if right is None else whole(name, right, f"window_size as {wanted}"),
    )


def one_of(**names: Any) -> Any:
    """What was given under several names of one argument, or None. Raises ArgumentError where it was two things."""
    given = {name: value for name, value in names.items() if value is not None}
    first = next(iter(given.values()), None)
    if any(value is not first for value in given.values()):
        raise ArgumentError(f"{' and '.join(given)} name the same argument and have different values; give one.")
    return first


def _dimensions(given: Any) -> int:
    return int(getattr(given, "ndim", 0))


def _described(given: Any) -> str:
    """'a str', and of arrays and tensors what it takes to see why they will not do."""
    words = kind_of(given)
    if _dimensions(given):
        return f"{words} of shape {tuple(given.shape)}"
    return f"{words} that requires a gradient" if getattr(given, "requires_grad", False) else words
