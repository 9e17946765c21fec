"""Where data lies: in the checkout where there is one, else inside the wheel, and in the user's own folder."""

import os
from pathlib import Path

from platformdirs import user_cache_path, user_data_path

PACKAGE = Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parent if (PACKAGE.parent / "pyproject.toml").is_file() else None
SHIPPED = CHECKOUT / "data" if CHECKOUT else PACKAGE / "data"
CACHE_VARIABLE = "SMSCOPE_CACHE"


def writable_data() -> Path:
    """New runs and profiles go here: data/ of a checkout, else the user's data folder."""
    return SHIPPED if CHECKOUT else user_data_path("smscope", appauthor=False)


def data_roots() -> list[Path]:
    """Every folder that may hold runs and profiles, the shipped one first."""
    roots = [SHIPPED, writable_data()]
    return list(dict.fromkeys(root for root in roots if root.is_dir()))


def cache() -> Path:
    """The private cubin cache; SMSCOPE_CACHE moves it."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else user_cache_path("smscope", appauthor=False)
