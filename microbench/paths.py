"""Where data lies: in the checkout where there is one, else inside the wheel, and in the user's own folder."""

import os
from pathlib import Path

from platformdirs import user_cache_path, user_data_path

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent if (PACKAGE.parent / "pyproject.toml").is_file() else None
DATA_VARIABLE = "SMSCOPE_DATA"
CACHE_VARIABLE = "SMSCOPE_CACHE"
# SMSCOPE_DATA stands for data/ as a whole: everything is read there, and written.
MOVED = Path(os.environ[DATA_VARIABLE]) if os.environ.get(DATA_VARIABLE) else None
SHIPPED = MOVED or (CHECKOUT / "data" if CHECKOUT else PACKAGE / "data")


def writable_data() -> Path:
    """New runs and profiles go here: data/ of a checkout, else the user's data folder."""
    return SHIPPED if CHECKOUT or MOVED else user_data_path("smscope", appauthor=False)


def data_roots() -> list[Path]:
    """Every folder that may hold runs and profiles, the shipped one first."""
    roots = [SHIPPED, writable_data()]
    return list(dict.fromkeys(root for root in roots if root.is_dir()))


def moved(path: Path | None = None) -> str:
    """The end of a sentence about what is not there, or not writable: that SMSCOPE_DATA moved it, where it did."""
    if MOVED is None or (path is not None and not path.is_relative_to(MOVED)):
        return ""
    return f"; {DATA_VARIABLE} names {MOVED}, which stands for data/ as a whole"


def runs_elsewhere() -> str:
    """The end of a sentence about runs that are not there: an installed package holds none of those on file."""
    if CHECKOUT or MOVED:
        return moved()
    return f"; the runs on file lie in data/ of a checkout, at which {DATA_VARIABLE}=CHECKOUT/data points"


def typed(verb: str) -> str:
    """How a person types a verb that make has too: a checkout has make, and its environment need not be activated."""
    return f"make {verb}" if CHECKOUT else f"smscope {verb}"


def cache() -> Path:
    """The private cubin cache; SMSCOPE_CACHE moves it."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else user_cache_path("smscope", appauthor=False)
