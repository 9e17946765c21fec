"""The exceptions of attention. Every message says what happened and what to do.

AttentionError
├── ProblemError        (a ValueError and a RuntimeError) shapes or options that describe no attention problem
│   ├── ArgumentError   (a TypeError as well) an argument of a type that is none of its own
│   ├── RankError       (an IndexError as well) a mask of fewer dimensions than torch's kernel reads
│   └── DtypeError      (an UnsupportedError as well) a dtype that no kernel computes in
├── UnsupportedError    (a NotImplementedError) a sound problem that the kernels asked for cannot serve
├── LaunchError         (a RuntimeError) the GPU refused a kernel, or a cold kernel met a graph capture
└── EnvironmentLacks    (an ImportError) a package this call needs is not installed
    └── NoGpu           (a microbench.errors.NoGpu) no GPU where one is needed; its exit code is that one's

FallbackWarning         (a UserWarning) torch's own kernel serves a call that no tuned kernel can

Where torch's scaled_dot_product_attention refuses the same call, the error here is also of the type that torch raises:
a RuntimeError for what does not fit, a TypeError for an argument of a wrong type, a NotImplementedError for a dtype,
an IndexError for dimensions that a mask lacks.
"""

import microbench.errors

ADDS_TORCH = "`pip install torch` adds it"


class AttentionError(Exception):
    """Root of the tree: catch this to catch everything attention raises on purpose."""

    exit_code = 1  # of a command that ends with it


class ProblemError(AttentionError, ValueError, RuntimeError):
    """Shapes or options that describe no attention problem. A RuntimeError too, which is what torch raises for them."""

    exit_code = 2


class ArgumentError(ProblemError, TypeError):
    """An argument of a type that is none of its own: a list for a tensor, a string for a flag."""


class RankError(ProblemError, IndexError):
    """A mask of fewer dimensions than torch's kernel reads, which has to be given whole."""


class UnsupportedError(AttentionError, NotImplementedError):
    """A sound problem that the kernels asked for cannot serve."""

    exit_code = 2


class DtypeError(ProblemError, UnsupportedError):
    """A dtype that no kernel computes in: integers, complex numbers, 8-bit floats."""


class LaunchError(AttentionError, RuntimeError):
    """The GPU refused a kernel, or a kernel that is not loaded yet was called while a CUDA graph is captured."""


class EnvironmentLacks(AttentionError, ImportError):
    """A package this call needs is not installed."""


class NoGpu(microbench.errors.NoGpu, EnvironmentLacks):
    """No GPU, where one is needed."""


class FallbackWarning(UserWarning):
    """Torch's own kernel serves a call that no tuned kernel can; the message names the reason."""


def kind_of(value: object) -> str:
    """The type of an argument, as a message names it: 'an int', 'a numpy.ndarray'."""
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"
