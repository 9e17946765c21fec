"""Whether the `microbench` and the `attention` that Python would import are ours. Looks, and imports neither.

Both names are common: PyPI has a distribution of each, and many projects have an attention.py beside their scripts.
"""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

PACKAGES = ("microbench", "attention")
# Both packages say this in their __init__.py. A distribution installed over ours replaces that file.
MARK = '__distribution__ = "smscope"'
ROOT = Path(__file__).resolve().parents[1]
AGAIN = "install smscope again (`pip install --force-reinstall --no-deps`)"


class ShadowedError(ImportError):
    """Something else has the name of one of our packages; the message says what, where, and how to get rid of it."""


def require() -> None:
    """Raise ShadowedError unless both packages lie beside this one and are ours."""
    for name in PACKAGES:
        found = _file_of(name)
        trouble = _trouble(name, found)
        if trouble:
            path = None if found is None else str(found)
            raise ShadowedError(f"smscope needs its own package {name!r}, and {trouble}.", name=name, path=path)


def is_the_program() -> bool:
    """Whether this process is `smscope` or `python -m smscope`, which ends in a sentence and not in a traceback."""
    return Path(sys.argv[0]).stem == "smscope" or ("-m", "smscope") in pairwise(sys.orig_argv)


def _trouble(name: str, found: Path | None) -> str | None:
    """What stands in the way of our package and what to do, without a full stop; None where nothing does."""
    ours = ROOT / name / "__init__.py"
    if found is None:
        return f"{ours} is not there: {AGAIN}"
    hidden = found.resolve() != ours
    if not hidden and MARK in found.read_text(encoding="utf-8", errors="replace"):
        return None
    other = _distribution(name, found)
    if other is not None:
        return f"{found}, installed by the distribution {other!r}, replaces it: `pip uninstall {other}`, then {AGAIN}"
    if not hidden:
        return f"{found} is not smscope's any more: {AGAIN}"
    what = found.parent if found.name == "__init__.py" else found
    return f"{what} hides it: rename that, or start Python where {what.parent} is not on its path"


def _file_of(name: str) -> Path | None:
    """The file that `import name` runs or has run; None where there is none, as for a folder without __init__.py."""
    loaded = sys.modules.get(name)
    if isinstance(loaded, ModuleType):
        file = loaded.__file__
    else:
        spec = importlib.util.find_spec(name)
        file = spec.origin if spec is not None and spec.has_location else None
    return Path(file) if file else None


def _distribution(name: str, file: Path) -> str | None:
    """The other distribution that installed this very file; None where none did."""
    from importlib import metadata

    for distribution in metadata.distributions():
        for each in distribution.files or ():
            same = each.parts[0] in (name, f"{name}.py") and Path(str(each.locate())).resolve() == file.resolve()
            if same and distribution.metadata["Name"] != "smscope":
                return distribution.metadata["Name"]
    return None
