"""What a drop-in has to ask torch and torch's public interface does not tell, or does not tell cheaply.

tests/cpu/test_torch_private.py fails by name where a new torch moves one of these.
"""

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._device import DeviceContext

_C: Any = torch._C


def _devices() -> Any:
    """Something whose `_initialized` is False while no tensor can be anywhere but on the CPU.

    It costs 5 ns to read, and the device of a tensor up to 300 where torch's kernels have just filled the caches.
    """
    there = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else torch.device("cuda")
    if there is None:
        return SimpleNamespace(_initialized=False)
    return torch.cuda if there.type == "cuda" else SimpleNamespace(_initialized=True)


devices = _devices()

# Bound once, because a user may replace the public name by attention.sdpa: a fallback by that name would call itself.
torch_sdpa: Callable[..., torch.Tensor] = _C._nn.scaled_dot_product_attention

# What torch.cuda.current_device() asks once CUDA is there; a torch for CPUs has none of it.
current_device: Callable[[], int] = getattr(_C, "_cuda_getDevice", lambda: -1)


def _flash_by_name(*tensors_and_flags: Any, scale: float | None) -> Any:
    return torch.ops.aten._scaled_dot_product_flash_attention(*tensors_and_flags, scale=scale)


# By torch.ops, whose operators are looked up and boxed in Python, a call of its CPU twin takes 4 us more (torch 2.13).
torch_flash: Callable[..., Any] = getattr(_C._VariableFunctions, "_scaled_dot_product_flash_attention", _flash_by_name)
is_any_autocast: Callable[[], bool] = getattr(_C, "_is_any_autocast_enabled", lambda: torch.is_autocast_enabled("cuda"))

_cudnn, _flash, _efficient = _C._get_cudnn_sdp_enabled, _C._get_flash_sdp_enabled, _C._get_mem_efficient_sdp_enabled
_math, _overrideable = _C._get_math_sdp_enabled, _C._get_overrideable_sdp_enabled


def backends_are_restricted() -> bool:
    """Whether sdpa_kernel(...) or torch.backends.cuda.enable_*_sdp has left fewer than all of torch's backends."""
    return not (_flash() and _efficient() and _math() and _cudnn() and _overrideable())


def allowed_backends() -> tuple[str, ...]:
    """Names, as in torch.nn.attention.SDPBackend, of the backends that torch's function may use."""
    states = {
        "CUDNN_ATTENTION": _cudnn,
        "FLASH_ATTENTION": _flash,
        "EFFICIENT_ATTENTION": _efficient,
        "MATH": _math,
        "OVERRIDEABLE": _overrideable,
    }
    return tuple(name for name, enabled in states.items() if enabled())


def is_sharded_on_cpu(tensor: torch.Tensor) -> bool:
    """Whether it is a DTensor of CPUs. Nobody has one who has not imported its package, which takes long."""
    if type(tensor) is torch.Tensor or not tensor.is_cpu:
        return False
    return isinstance(tensor, getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", ()))


def only_vmap_is_active() -> bool:
    """Whether torch.vmap maps over this call, and no gradient transform of torch.func does."""
    if not _C._are_functorch_transforms_active():
        return False
    from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters

    vmap = _C._functorch.TransformType.Vmap
    return all(interpreter.key() == vmap for interpreter in retrieve_all_functorch_interpreters())


def only_a_default_device() -> bool:
    """Whether the one mode for functions of this thread is torch.set_default_device's, or `with torch.device(...)`."""
    return _C._len_torch_function_stack() == 1 and type(_C._get_function_stack_at(0)) is DeviceContext


def saves_through_hooks() -> bool:
    """Whether what autograd saves passes hooks now: a checkpoint's, say, which compares it with what a replay saves."""
    top = getattr(_C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is None or top(False) is not None


def apply_of(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """`function.apply` where no transform of torch.func is on, for which alone torch's own, in Python, looks."""
    found: Callable[..., Any] = super(torch.autograd.Function, function).apply  # type: ignore[misc]
    return found


def alike(*tensors: torch.Tensor) -> Callable[..., bool] | None:
    """A question to the guards of torch's compiler: whether other tensors are like these, but for address and values.

    Class, dispatch keys with what this thread adds to them and takes away, dtype, device, sizes, strides, and whether a
    gradient is wanted: 0.3 us for three tensors, where to ask each attribute and to look them up took 1.9. It does not
    see the keys of modes and of the dispatcher in Python, and says no where one tensor is given twice. Not for nested
    tensors, on which it ends the process (torch 2.13). None where torch has no such guards, or others.
    """
    try:
        sizes, strides = [list(each.shape) for each in tensors], [list(each.stride()) for each in tensors]
        guards = _C._dynamo.guards.TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        found: Callable[..., bool] = guards.check
        return found if found(*tensors) is True else None
    except Exception:
        return None


def forget_kernels_of(operator: Any, keys: tuple[str, ...]) -> None:
    """Let the dispatcher in Python, with which symbolic traces run, look up `operator`'s kernels for `keys` again.

    It remembers them from the first trace of a process; torch.library tells it of no kernel that is registered or
    removed later (torch 2.13).
    """
    for key in keys:
        operator._uncache_dispatch(_C.DispatchKey.__members__[key])


def asked_of_torch() -> tuple[str, ...]:
    """A sentence, without a full stop, where attention.sdpa hands every call to torch's function."""
    if not backends_are_restricted():
        return ()
    return (
        "torch.nn.attention.sdpa_kernel or torch.backends.cuda restricts torch's function to "
        f"{', '.join(allowed_backends()) or 'no backend'}, so attention.sdpa hands it this call; "
        "only='smscope' runs our kernel anyway",
    )


# The compiler calls these once, while it traces. This is all that torch.compiler.assume_constant_result does; calling
# that imports the compiler, half of a first call's time.
for each in (backends_are_restricted, only_vmap_is_active):
    setattr(each, "_dynamo_marked_constant", True)  # noqa: B010


def _observed() -> Callable[[], bool]:
    """at::hasCallbacks(): profilers of this thread, execution traces, and what a Kineto daemon starts from outside.

    Python sees the first of these alone (torch.autograd.profiler._is_profiler_enabled). The call takes 0.15 us on the
    host of this project's CPU figures, a RecordFunction that nobody hears 3.4 us.
    """
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        try:
            found = ctypes.PyDLL(str(Path(torch.__file__).parent / "lib" / name))["_ZN2at12hasCallbacksEv"]
        except (OSError, AttributeError):
            continue
        found.restype, found.argtypes = ctypes.c_bool, ()
        return found
    return lambda: bool(torch.autograd.profiler._is_profiler_enabled)


is_observed = _observed()


def _on_current_gpu(size: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, strides, dtype=dtype, device="cuda")


# An empty tensor as torch's compiler makes those of its graphs: past the dispatcher, in half the time on a CPU.
empty_on_current_gpu: Callable[[tuple[int, ...], tuple[int, ...], torch.dtype], torch.Tensor] = getattr(
    _C._dynamo.guards, "_empty_strided_cuda", _on_current_gpu
)
