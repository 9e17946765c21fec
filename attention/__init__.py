"""Attention that is chosen by what was measured of this machine.

    attention.sdpa(query, key, value, ...)          torch's signature and layout, (B, H, S, D)
    attention.flash_attn_func(q, k, v, ...)         flash-attn's, (B, S, H, D): windows, softcap, ALiBi, sinks, lse
    attention.flash_attn_varlen_func(q, k, v, ...)  the same of packed sequences, (T, H, D)
    attention.flash_attn_qkvpacked_func(qkv, ...)   and its kin: q, k and v, or k and v, in one tensor
    attention.explain(query, key, value, ...)       which kernel serves sdpa, with which configuration, and why
    attention.explain_flash_attn_func(q, k, v, ...) the same of flash_attn_func; explain_flash_attn_varlen_func likewise
    attention.explain(problem, gpu="...")           the same from a committed profile, without torch
    attention.install(), uninstall(), installed()   torch's own function becomes sdpa: no line of a model changes
    attention.record(path)                          a with: notes the kinds of calls a program makes, in a file
    attention.prewarm(path or problems, gpu=...)    compiles what they will run, on all cores, before a call waits
    attention.integrations.transformers.register()  attn_implementation="smscope" for Transformers

Nothing here imports torch before a tensor comes in.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    from microbench import needs
except ImportError as error:
    if error.name != "microbench":
        raise
    where = f"{error.path} has its name" if error.path else "it is not there"
    raise ImportError(
        f"attention needs smscope's microbench, and {where}; `import smscope` says what to do."
    ) from error

with needs.one_sentence():
    from attention.ahead.prewarm import Prewarmed, prewarm
    from attention.choose.choose import Choice, choose
    from attention.choose.explain.explain import explain
    from attention.choose.explain.explanation import Explanation
    from attention.errors import (
        ArgumentError,
        AttentionError,
        DtypeError,
        EnvironmentLacks,
        FallbackWarning,
        NoGpu,
        ProblemError,
        RankError,
        UnsupportedError,
    )
    from attention.problem import AttentionProblem

if TYPE_CHECKING:
    from attention.ahead.record import record
    from attention.frontends.flash_attn.explain import explain_flash_attn_func, explain_flash_attn_varlen_func
    from attention.frontends.flash_attn.functions import flash_attn_func, flash_attn_varlen_func
    from attention.frontends.flash_attn.packed import (
        flash_attn_kvpacked_func,
        flash_attn_qkvpacked_func,
        flash_attn_varlen_kvpacked_func,
        flash_attn_varlen_qkvpacked_func,
    )
    from attention.frontends.sdpa import sdpa
    from attention.integrations.torch_sdpa import install, installed, uninstall

__all__ = [
    "ArgumentError",
    "AttentionError",
    "AttentionProblem",
    "Choice",
    "DtypeError",
    "EnvironmentLacks",
    "Explanation",
    "FallbackWarning",
    "NoGpu",
    "Prewarmed",
    "ProblemError",
    "RankError",
    "UnsupportedError",
    "choose",
    "explain",
    "explain_flash_attn_func",
    "explain_flash_attn_varlen_func",
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "install",
    "installed",
    "prewarm",
    "record",
    "sdpa",
    "uninstall",
]
# What tells this package from others of its name (smscope/ours.py).
__distribution__ = "smscope"


# Where each name lies that needs torch.
_WITH_TORCH = {
    "install": "integrations.torch_sdpa",
    "installed": "integrations.torch_sdpa",
    "uninstall": "integrations.torch_sdpa",
    "record": "ahead.record",
    "sdpa": "frontends.sdpa",
    "explain_flash_attn_func": "frontends.flash_attn.explain",
    "explain_flash_attn_varlen_func": "frontends.flash_attn.explain",
    "flash_attn_func": "frontends.flash_attn.functions",
    "flash_attn_varlen_func": "frontends.flash_attn.functions",
    "flash_attn_qkvpacked_func": "frontends.flash_attn.packed",
    "flash_attn_kvpacked_func": "frontends.flash_attn.packed",
    "flash_attn_varlen_qkvpacked_func": "frontends.flash_attn.packed",
    "flash_attn_varlen_kvpacked_func": "frontends.flash_attn.packed",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH:
        raise AttributeError(f"module 'attention' has no attribute {name!r}")
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise EnvironmentLacks(
            f"attention.{name} needs torch, which is not installed here; `pip install torch` adds it, "
            "as `make lab` does."
        ) from error
    found = getattr(import_module(f"attention.{_WITH_TORCH[name]}"), name)
    globals()[name] = found
    return found
