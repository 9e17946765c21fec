"""Which code a timing is of: a hash of what runs, by which a timing holds or does not.

Of a CUDA kernel that is the text of kernel.cu with all that it includes, without comments and spacing: to move, rename
or split a file loses no timing. How a tile is chosen or predicted (variant.py, launch.py) changes no kernel. Of a CPU
kernel it is the Python that Numba compiles.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

from attention.variant import KERNELS
from microbench.build import HEADERS

INCLUDE = re.compile(r'^[ \t]*#include "([^"]+)"', re.MULTILINE)
ONCE = re.compile(r"^[ \t]*#pragma once", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NOT_RUN = ("variant.py", "__init__.py")
# The same text hashed with the names of its files, as it was when these two were timed on an H200.
EARLIER = {
    "bd0fe8b2d94a37ce1cb2089477de29c89bd2fcc783d4049c3209665259465b57": (
        "7c0431dce9c95f4020172764be657add84ee58c3b57f411a555aaa428f73a6a6"  # sm90a/forward/warp_specialised
    ),
    "d99be95e857a26c3ded8316c4e81b0a44a850cd04a82ccf4a28085cb38bed9af": (
        "fda86c68361fa38027992b67eaf98e39b3c4a7882dc73070ef6368b6e2d620e0"  # sm80/forward/software_pipelined
    ),
}


@cache
def code_sha256(variant: str) -> str:
    """The hash of a variant's code, `variant` being its folder under kernels/."""
    folder = KERNELS / variant
    kernel = folder / "kernel.cu"
    if kernel.is_file():
        return hashlib.sha256(" ".join(_expanded(kernel, folder, set()).split()).encode()).hexdigest()
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        if file.name not in NOT_RUN:
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def same_code(stored: str, variant: str) -> bool:
    """Whether a stored hash is of the code that a variant has now."""
    return EARLIER.get(stored, stored) == code_sha256(variant)


def _expanded(file: Path, folder: Path, included: set[Path]) -> str:
    """The text of a file, and in the place of each #include that of what is included for the first time."""
    included.add(file)

    def text_of(name: re.Match[str]) -> str:
        places = (root / name[1] for root in (file.parent, folder, KERNELS / "common", HEADERS))
        found = next((place for place in places if place.is_file()), None)
        # What is not there is the emulator's, which has another body for each wrapper.
        return "" if found is None or found in included else _expanded(found, folder, included)

    return INCLUDE.sub(text_of, ONCE.sub("", COMMENT.sub(" ", file.read_text())))
