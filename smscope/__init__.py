"""One name for both packages: `smscope.sdpa`, `smscope.Profile` and the other public names of attention and microbench.

Importing this loads neither package, nor torch, nor CuPy; a name loads what it needs when it is first asked for.
Raises ShadowedError where a file or another distribution stands in the place of one of the two.
"""

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from smscope import ours

if TYPE_CHECKING:
    from attention import *  # noqa: F403
    from microbench import *  # noqa: F403

try:
    ours.require()
except ours.ShadowedError as error:
    if ours.is_the_program():
        sys.exit(str(error))
    raise


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(public for package in ours.PACKAGES for public in importlib.import_module(package).__all__)
    # `from smscope import cli` asks here before it imports the module.
    if not name.startswith("_") and importlib.util.find_spec(f"smscope.{name}") is None:
        for package in map(importlib.import_module, ours.PACKAGES):
            if name in package.__all__:
                found = globals()[name] = getattr(package, name)
                return found
    raise AttributeError(f"module 'smscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
