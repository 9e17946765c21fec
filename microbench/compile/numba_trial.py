"""Whether the second method can compile anything here, found by trying: packages may be there and not fit together."""

from collections.abc import Callable
from importlib import metadata

from microbench.compile.numba import build_image
from microbench.errors import EnvironmentLacks, sentence
from microbench.machine.arch import Arch
from microbench.probe import Build, SassContract, Twin


def why_not(arch: Arch) -> str:
    """Why nothing can be compiled for `arch` here, found by trying the least of kernels; '' where it can.

    What is installed may not fit together: numba-cuda 0.30 asks for numpy.row_stack, and NumPy 2.5 has none.
    """
    try:
        build_image(Twin(_least, "void(int64)"), Build((), SassContract(())), "least", arch)
    except EnvironmentLacks as error:
        return sentence(error)
    except Exception as error:  # whatever it is, it is the reason
        found = ", ".join(f"{name} {metadata.version(name)}" for name in ("numba-cuda", "numba", "numpy"))
        return f"numba-cuda cannot compile any kernel here ({found}): {sentence(error)}"
    return ""


def _least() -> Callable[..., None]:
    from numba import int32

    from microbench.compile.numba_ptx import store_global

    def kernel(out):  # type: ignore[no-untyped-def]
        store_global(out, int32(0))

    return kernel
