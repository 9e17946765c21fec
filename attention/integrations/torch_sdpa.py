"""The first door: torch's scaled_dot_product_attention becomes attention.sdpa, with no line of a model changed.

Whatever calls it is served, by name or through a module: nn.MultiheadAttention, nn.TransformerEncoder, timm, diffusers,
Transformers' `sdpa`. The operator's kernels for CPU and CUDA are overridden, and torch's own stand behind them: they
serve what attention.sdpa hands to torch or refuses, and transforms, exports, subclasses and fakes, as if nothing were
installed. On a CPU where our kernel won no duel nothing is overridden: a tiny call would take a quarter longer for it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._guards import TracingContext
from torch.autograd import forward_ad

from attention.errors import EnvironmentLacks, ProblemError, UnsupportedError
from attention.frontends.sdpa import sdpa
from attention.kernels.torch.common.own import STAND_INS, within
from attention.op.plan import cpu_is_torchs
from attention.torch_private import forget_kernels_of

OPERATOR = "scaled_dot_product_attention"
KEYS = {"CPU": ("CPU", "AutogradCPU"), "CUDA": ("CUDA", "AutogradCUDA")}
CACHE_TAG = "+smscope-sdpa"
_OVERLOAD = torch.ops.aten.scaled_dot_product_attention.default
_C: Any = torch._C
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})


class _Override:
    """The kernels registered with torch, and who asked for them.

    Torch reads its table of kernels without a lock: a call that meets a change of it in another thread may fail (one of
    some 400 did, torch 2.13). The table changes in the first install() or installed(), and in uninstall(), only.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.library: Any = None
        self.keys: tuple[str, ...] = ()
        self.asked = False  # by install()
        self.contexts = 0  # that are open
        self.serves = False

    def settle(self) -> None:
        """Serve or pass on, whichever is due. Under the lock."""
        serves = self.asked or self.contexts > 0
        if serves and self.library is None:
            self._register()
        _tag_the_caches(serves)
        self.serves = serves

    def remove(self) -> None:
        """Remove the kernels once nobody needs them. The caller holds the lock."""
        if not self.serves and self.library is not None:
            self.library._destroy()
            self.library = None
            forget_kernels_of(_OVERLOAD, self.keys)

    def _register(self) -> None:
        library: Any = torch.library
        ours = library.Library("aten", "IMPL")
        self.keys = KEYS["CUDA"] if cpu_is_torchs() else KEYS["CPU"] + KEYS["CUDA"]
        # All of them first: with a kernel of ours for CPU, torch's for AutogradCPU is one that cannot differentiate.
        own = [library.get_kernel(f"aten::{OPERATOR}", key) for key in self.keys]
        for key, kernel in zip(self.keys, own, strict=True):
            ours.impl(OPERATOR, _kernel(kernel), key, with_keyset=True)
        self.library = ours
        forget_kernels_of(_OVERLOAD, self.keys)


_override = _Override()


def install() -> None:
    """From now on torch's scaled_dot_product_attention is attention.sdpa, in every thread of this process.

    A second call changes nothing. Call it before other threads compute attention. Graphs that were compiled before stay
    as they are. Raises EnvironmentLacks where torch is older than 2.10, which cannot hand out its own kernel.
    """
    _require_kernels()
    with _override.lock:
        _override.asked = True
        _override.settle()


def uninstall() -> None:
    """Undo install(), and take out what `with installed():` left, while no other thread computes attention.

    Inside of `with installed():` the kernels stay, and serve until its end. Never an error.
    """
    with _override.lock:
        _override.asked = False
        _override.settle()
        _override.remove()


@contextmanager
def installed() -> Iterator[None]:
    """As install() for the length of a `with`, in every thread of this process; what was installed before stays.

    Other threads may compute attention meanwhile, once a first `with` was entered. Afterwards the kernels pass every
    call on to torch's, until uninstall() takes them out.
    """
    _require_kernels()
    with _override.lock:
        _override.contexts += 1
        _override.settle()
    try:
        yield
    finally:
        with _override.lock:
            _override.contexts -= 1
            _override.settle()


def _kernel(own: Any) -> Any:
    """The override for one dispatch key, with torch's kernel of that key behind it."""

    def override(
        keys: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        def torchs(*inputs: Any, **options: Any) -> torch.Tensor:
            result: torch.Tensor = own.call_boxed(keys, *inputs, **options)
            return result

        inputs = (query, key, value, attn_mask, dropout_p, is_causal)
        if within.own is not None or not _override.serves or not _ours(query, key, value, attn_mask):
            return torchs(*inputs, scale=scale, enable_gqa=enable_gqa)
        within.own = torchs
        try:
            return sdpa(*inputs, scale, enable_gqa)
        except (ProblemError, UnsupportedError):
            # Torch may serve it, or refuse it in words that its callers know. Nothing was computed yet.
            return torchs(*inputs, scale=scale, enable_gqa=enable_gqa)
        finally:
            within.own = None

    return override


def _ours(*tensors: torch.Tensor | None) -> bool:
    """Whether these are tensors with numbers, or what a compiler has for them, and no transform is on."""
    if _C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return False
    if torch.compiler.is_exporting():  # an exported graph stays portable
        return False
    others = {type(tensor) for tensor in tensors if tensor is not None} - _PLAIN
    # Stand-ins are a compiler's where it has a context; elsewhere they are somebody's who asks for torch's own graph.
    return not others or (TracingContext.try_get() is not None and {kind.__name__ for kind in others} <= STAND_INS)


def _require_kernels() -> None:
    if not hasattr(torch.library, "get_kernel"):
        raise EnvironmentLacks(
            f"attention.install() needs torch 2.10 or newer, and this is {torch.__version__}; call attention.sdpa, "
            "or assign it to torch.nn.functional.scaled_dot_product_attention."
        )


def _tag_the_caches(ours: bool) -> None:
    """Keep graphs with our operator, which the compiler stores on disk, apart from those without.

    Their key is the graph before the operator is overridden: a process that never imported attention would find one
    with our operator in it and fail (torch 2.13).
    """
    config: Any = torch.compiler.config
    tag = config.cache_key_tag.removesuffix(CACHE_TAG)
    config.cache_key_tag = tag + CACHE_TAG if ours else tag
