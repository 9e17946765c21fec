"""Whether torch's dispatcher has anything to do for a call but reach our kernel; if not, the call need not pass it.

Two Python kernels and the boxing of 18 arguments take it about 24 us of an eager call (tests/gpu/host_time.py on the
host of an H100, torch 2.11), longer than many a kernel runs. Gradients, transforms, modes, subclasses and the profiler
need it.
"""

from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn import Parameter

from attention.torch_private import is_observed, only_a_default_device

_C: Any = torch._C
PLAIN_TYPES = (torch.Tensor, Parameter)
_include_set = _C._dispatch_tls_local_include_set


def _quiet() -> frozenset[int]:
    """The dispatch keys a thread includes with no mode and no transform on, outside and inside inference mode."""
    inference = _C.DispatchKeySet(_C.DispatchKey.BackendSelect)
    return frozenset({inference.raw_repr(), (inference | _C.DispatchKeySet(_C.DispatchKey.ADInplaceOrView)).raw_repr()})


_QUIET = _quiet()
_plain: set[int] = set()  # the dispatch keys of plain dense tensors, once one of their device was seen
_seen: set[str] = set()


def is_quiet() -> bool:
    """Whether nothing is on in this thread that would meet an operator: no mode, no transform, and no observer.

    A default device is a mode for functions, which asks for a device where a function makes a tensor.
    """
    return nothing_is_on() and (not _C._is_torch_function_mode_enabled() or only_a_default_device())


def nothing_is_on() -> bool:
    """The same, whatever modes for functions are on."""
    return _include_set().raw_repr() in _QUIET and forward_ad._current_level < 0 and not is_observed()


def needs_no_dispatch(*tensors: torch.Tensor | None) -> bool:
    """Whether calling the operator's kernel is the same as calling the operator: on these tensors, in this thread."""
    if torch.compiler.is_compiling() or not is_quiet():
        return False
    grad = torch.is_grad_enabled()
    for tensor in tensors:
        if tensor is None:
            continue
        if (grad and tensor.requires_grad) or type(tensor) not in PLAIN_TYPES:
            return False
        keys = _C._dispatch_keys(tensor).raw_repr()
        if keys not in _plain and keys not in _learnt(tensor.device):
            return False
    return True


def _learnt(device: torch.device) -> set[int]:
    """The keys of plain tensors, those of a device that our kernels run on included."""
    if device.type in ("cpu", "cuda") and device.type not in _seen:
        for inference in (False, True):
            with torch.inference_mode(inference):
                _plain.add(_C._dispatch_keys(torch.empty(0, device=device)).raw_repr())
        _seen.add(device.type)
    return _plain
