"""Which code a timing is of: a hash of what runs, by which a timing holds or does not.

Of a CUDA kernel that is the text of kernel.cu and of all that it includes, without comments and spacing; how a tile is
chosen or predicted (variant.py, launch.py) changes no kernel. Of a CPU kernel it is the Python that Numba compiles.
"""

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attention.variant import KERNELS
from microbench.build import HEADERS

INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NOT_RUN = ("variant.py", "__init__.py")
# Until this hash came, timings held the hash of every file of the folder. These two are of the same kernels.
EARLIER = {
    "8d655214ef29af30dcd0b72473ec6a3817544ad8c5c195b354b9e2580f9331da": (
        "88b77d543141d26b419d19c566ba4d60d84afe990292e4b0cf7e40c7d2b85f9d"  # sm90a/forward/warp_specialised
    ),
    "9d9daa51d140248264476d9242703373cd69e9432cc174e0b4f592fcc3c69f52": (
        "db14bb1e9f1c412e6ed80e664de92beea62ff42266e06e080875cdabc32eed1a"  # sm80/forward/software_pipelined
    ),
}


@cache
def code_sha256(variant: str) -> str:
    """The hash of a variant's code, `variant` being its folder under kernels/."""
    folder = KERNELS / variant
    kernel = folder / "kernel.cu"
    digest = hashlib.sha256()
    for file in _device_code(kernel, folder) if kernel.is_file() else _host_code(folder):
        digest.update(file.name.encode() + b"\0" + _bare(file).encode())
    return digest.hexdigest()


def same_code(stored: str, variant: str) -> bool:
    """Whether a stored hash is of the code that a variant has now."""
    return EARLIER.get(stored, stored) == code_sha256(variant)


def _device_code(kernel: Path, folder: Path) -> list[Path]:
    """kernel.cu and everything that it includes, each once, in the order of first inclusion."""
    found: dict[Path, None] = {}

    def walk(file: Path) -> None:
        if file in found:
            return
        found[file] = None
        for name in INCLUDE.findall(file.read_text()):
            places = (root / name for root in (file.parent, folder, KERNELS / "common", HEADERS))
            included = next((place for place in places if place.is_file()), None)
            if included is not None:  # what is not there is the emulator's, which has another body for each wrapper
                walk(included)

    walk(kernel)
    return list(found)


def _host_code(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.glob("*.py")) if file.name not in NOT_RUN)


def _bare(file: Path) -> str:
    text = file.read_text()
    return " ".join(COMMENT.sub(" ", text).split()) if file.suffix in (".cu", ".cuh") else text
