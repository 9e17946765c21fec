"""The exceptions of attention. Every message says what happened and what to do.

AttentionError
├── ProblemError        (a ValueError) shapes, dtypes or options that describe no attention problem
│   └── ArgumentError   (a TypeError as well) an argument of a type that is none of its own
├── UnsupportedError    (a NotImplementedError) a sound problem that the kernels asked for cannot serve
├── LaunchError         (a RuntimeError) the GPU refused a kernel, or a cold kernel met a graph capture
└── EnvironmentLacks    (an ImportError) a package this call needs is not installed

FallbackWarning         (a UserWarning) torch's own kernel serves a call that no tuned kernel can
"""


class AttentionError(Exception):
    """Root of the tree: catch this to catch everything attention raises on purpose."""

    exit_code = 1  # of a command that ends with it


class ProblemError(AttentionError, ValueError):
    """Shapes, dtypes or options that describe no attention problem."""

    exit_code = 2


class ArgumentError(ProblemError, TypeError):
    """An argument of a type that is none of its own: a list for a tensor, a string for a flag."""


class UnsupportedError(AttentionError, NotImplementedError):
    """A sound problem that the kernels asked for cannot serve."""

    exit_code = 2


class LaunchError(AttentionError, RuntimeError):
    """The GPU refused a kernel, or a kernel that is not loaded yet was called while a CUDA graph is captured."""


class EnvironmentLacks(AttentionError, ImportError):
    """A package this call needs is not installed."""


class FallbackWarning(UserWarning):
    """Torch's own kernel serves a call that no tuned kernel can; the message names the reason."""


def kind_of(value: object) -> str:
    """The type of an argument, as a message names it: 'an int', 'a numpy.ndarray'."""
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"{'an' if name[0].lower() in 'aeio' else 'a'} {name}"
