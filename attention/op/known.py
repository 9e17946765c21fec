"""Calls that were served before, found again by all that their way depends on but addresses and values.

Once for a kind of call    it is judged, and its kernel is chosen and made ready: by a front end, which keeps who serves
Each call                  whether torch has anything to add (op.eager), whether addresses can be read, and the kind:
                           one of the last few of its options by torch's own guards, else it is looked up (1.9 us more)

The tensors of features that a call brings are a part of its kind, strides and what is left of their addresses by 16
bytes included, which decide what a launch copies. A front end that finds nothing here judges the call.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from attention.kernels.common.layout import READ_BYTES, Where, addresses
from attention.op.eager import PLAIN_TYPES, is_quiet, nothing_is_on
from attention.torch_private import alike, current_device, is_any_autocast, only_a_default_device

MOST_KEPT = 4096
MOST_RECENT = 4  # of the same options and bytes: more are as quickly looked up as asked for one by one
Given = list[torch.Tensor]  # the tensors of features that a call brings, in its front end's order
Serve = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Where, Given], Any]
Maybe = torch.Tensor | None
Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
_plain = frozenset(PLAIN_TYPES)
_is_function_mode_on: Callable[[], bool] = torch._C._is_torch_function_mode_enabled
# A tensor among the options could have another value in the next call.
_FIXED = frozenset({bool, int, float, str, type(None)})
_NONE: Given = []


class Kept(NamedTuple):
    """A kind of calls. `alike` tells one by its tensors, on this device; None where more is to be asked than those.

    `places`: what is left by 16 bytes of the addresses of the tensors of features.
    """

    serve: Serve
    alike: Any
    device: int
    places: tuple[int, ...] = ()


class Known:
    """The kinds of one front end's calls, on the current device, each with who serves it.

    of_cpu   calls of CPU tensors are kept as well, where something stands in for a GPU
    recent   by their options and the bytes of key those kinds that were served last, which are asked for before all
             others: one question to torch takes the place of the attributes by which kinds are looked up
    """

    def __init__(self, of_cpu: bool = False) -> None:
        self.of_cpu = of_cpu
        self.calls: dict[tuple[Any, ...], Kept] = {}
        self.recent: dict[tuple[Any, ...], tuple[Kept, ...]] = {}

    def keeps(self, query: torch.Tensor) -> bool:
        """Whether calls on its device are kept."""
        return query.is_cuda or (self.of_cpu and query.is_cpu)

    def served(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        options: tuple[Any, ...],
        others: tuple[Maybe, ...] = (),
    ) -> Any:
        """The result of a call; None where it must be judged. Raises what a kernel raises.

        `others`: the tensors of features, at the same places in all calls of these options; None where there is none.
        """
        if not _is_function_mode_on():
            return self._served(query, key, value, options, others)
        if not only_a_default_device():
            return None
        with torch._C.DisableTorchFunction():  # else the mode meets every question below
            return self._served(query, key, value, options, others)

    def _served(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        options: tuple[Any, ...],
        others: tuple[Maybe, ...],
    ) -> Any:
        serve, where, given = None, None, _NONE
        try:
            if query.is_cpu and not self.of_cpu:
                return None
            recent = None if _is_one_twice(query, key, value) else self.recent.get(_of(options, key, others))
            if recent is not None and nothing_is_on():
                where = addresses(query, key, value)  # before the question: of what has any, nested ones lack strides
                if where is not None and not (query.is_nested or key.is_nested or value.is_nested):
                    given = _given(others) if others else _NONE
                    for kept in recent:
                        if (
                            kept.alike(query, key, value, *given)
                            and kept.device == current_device()
                            and (not given or kept.places == _places_of(given))
                        ):
                            serve = kept.serve
                            break
        except Exception:
            return None  # no tensors, or some without memory; options without a hash
        if serve is None or where is None:
            return self._looked_up(query, key, value, options, others)
        return serve(query, key, value, where, given)

    def _looked_up(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        options: tuple[Any, ...],
        others: tuple[Maybe, ...],
    ) -> Any:
        try:
            if not (_are_plain(query, key, value) and is_quiet()) or is_any_autocast():
                return None
            kind, given = _kind(query, key, value, options), _NONE
            if others:
                given = _given(others)
                if not all(map(_is_plain, given)):
                    return None
                kind += _kinds_of(others)
            kept = self.calls.get(kind)
            where = None if kept is None else addresses(query, key, value)
        except Exception:  # as above, or without strides
            return None
        if kept is None or where is None:
            return None
        if kept.alike is not None and not _is_one_twice(query, key, value):
            self._is_recent(kind, kept, options, (query, key, value), others)
        return kept.serve(query, key, value, where, given)

    def _is_recent(
        self, kind: tuple[Any, ...], kept: Kept, options: tuple[Any, ...], tensors: Triple, others: tuple[Maybe, ...]
    ) -> None:
        """Ask for this kind first, the next time."""
        of = _of(options, tensors[1], others)
        before = self.recent.get(of, ())
        if kept in before:  # and said no: of parameters, say, or in inference mode, which a kind does not tell apart
            kept = self.calls[kind] = kept._replace(alike=_question(*tensors, *_given(others)) or kept.alike)
        self.recent[of] = (kept, *[each for each in before if each != kept][: MOST_RECENT - 1])

    def keep(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        options: tuple[Any, ...],
        serve: Serve,
        others: tuple[Maybe, ...] = (),
    ) -> None:
        """The next calls like this one, which lies on the current device, are `serve`'s."""
        if len(self.calls) >= MOST_KEPT:
            self.forget()
        kind = _kind(query, key, value, options) + _kinds_of(others)
        given = _given(others)
        question = _question(query, key, value, *given)
        kept = self.calls[kind] = Kept(serve, question, current_device(), _places_of(given))
        if kept.alike is not None:
            self._is_recent(kind, kept, options, (query, key, value), others)

    def forget(self) -> None:
        """All of them."""
        self.calls.clear()
        self.recent.clear()


def keepable(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    options: tuple[Any, ...],
    given: Sequence[torch.Tensor] = (),
) -> bool:
    """Whether a call is of those that are found again: torch had nothing to add, and nothing of it may change later.

    `given`: the tensors of features that it brings.
    """
    flat = (part for each in options for part in (each if type(each) is tuple else (each,)))
    return (
        _are_plain(query, key, value)
        and is_quiet()
        and not is_any_autocast()
        and query.device.index in (None, current_device())
        and all(type(each) in _FIXED for each in flat)
        and _can_be_read(given)
    )


def _question(*tensors: torch.Tensor) -> Callable[..., bool] | None:
    """None where it would be no help: with gradients, which it tells of tensors alone, or of one tensor given twice."""
    wants = any([each.requires_grad for each in tensors])
    return None if wants or _is_one_twice(*tensors[:3]) else alike(*tensors)


def _given(others: tuple[Maybe, ...]) -> Given:
    return [each for each in others if each is not None]


def _of(options: tuple[Any, ...], key: torch.Tensor, others: tuple[Maybe, ...]) -> tuple[Any, ...]:
    """What recent kinds are kept by. Two of them may bring like tensors of features, at other places."""
    return (options, key.nbytes, *[each is None for each in others]) if others else (options, key.nbytes)


def _places_of(given: Sequence[torch.Tensor]) -> tuple[int, ...]:
    return tuple([each.data_ptr() % READ_BYTES for each in given])


def _is_one_twice(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    return query is key or key is value or value is query


def with_gradient(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)


def _are_plain(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    """With `addresses` all that op.eager reads off their dispatch keys, in a fifth of the time."""
    return (
        type(query) in _plain
        and type(key) in _plain
        and type(value) in _plain
        and not (query.is_neg() or key.is_neg() or value.is_neg())
    )


def _is_plain(tensor: torch.Tensor) -> bool:
    """The same of a tensor of features: one that has memory of its own, and wants no gradient."""
    return (
        type(tensor) in _plain
        and not tensor.is_neg()
        and tensor.data_ptr() != 0
        and not (tensor.requires_grad and torch.is_grad_enabled())
    )


def _can_be_read(given: Sequence[torch.Tensor]) -> bool:
    try:
        return all(each.layout is torch.strided and _is_plain(each) for each in given)
    except RuntimeError:  # of what has no memory
        return False


def _kind(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, options: tuple[Any, ...]) -> tuple[Any, ...]:
    return (
        query.shape,
        query.stride(),
        query.dtype,
        query.device,
        key.shape,
        key.stride(),
        key.dtype,
        key.device,
        value.shape,
        value.stride(),
        value.dtype,
        value.device,
        options,
        current_device(),
        with_gradient(query, key, value) and 1 + torch.are_deterministic_algorithms_enabled(),
    )


def _kinds_of(others: tuple[Maybe, ...]) -> tuple[Any, ...]:
    return tuple(
        [
            None if each is None else (each.shape, each.stride(), each.dtype, each.device, each.data_ptr() % READ_BYTES)
            for each in others
        ]
    )
