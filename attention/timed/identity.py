"""Which code a timing is of, by which it holds or does not.

A CUDA kernel is its cubin: whatever is moved, renamed or written otherwise, the same bytes take the same time. Which
cubins this tree compiles to is on file (timed.cubins); while the text of a kernel is what was timed, nobody needs
to look. A CPU kernel is the Python that Numba compiles.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

from attention.kernels.launch.source import PACKAGE, device_code, folders_of, generated
from attention.variant import KERNELS
from microbench.compile import HEADERS

INCLUDE = re.compile(r'^[ \t]*#include "([^"]+)"', re.MULTILINE)
ONCE = re.compile(r"^[ \t]*#pragma once", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
NOT_RUN = ("variant.py", "__init__.py")


@cache
def text_sha256(variant: str) -> str:
    """The hash of a variant's text, `variant` being its folder under kernels/: how a tile is chosen is not in it.

    Of a CUDA kernel that is its .cu with all that it includes, without comments and spacing.
    """
    return hashed(variant)[0]


def hashed(variant: str) -> tuple[str, tuple[Path, ...]]:
    """The same hash read anew, and the files that the text lies in."""
    folder = KERNELS / variant
    kernel = device_code(folder)
    if kernel is not None:
        included: set[Path] = set()
        text = " ".join(_expanded(kernel, folder, included, dict(generated(folder))).split())
        return hashlib.sha256(text.encode()).hexdigest(), tuple(sorted(included))
    digest = hashlib.sha256()
    run = tuple(file for file in sorted(folder.glob("*.py")) if file.name not in NOT_RUN)
    for file in run:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest(), run


def _expanded(file: Path, folder: Path, included: set[Path], written: dict[str, str]) -> str:
    """The text of a file, and in the place of each #include that of what is included for the first time.

    `written` are generated headers, by name, which are taken out as they are met.
    """
    included.add(file)

    def text_of(name: re.Match[str]) -> str:
        if name[1] in written:
            return replaced(written.pop(name[1]))
        places = (root / name[1] for root in (file.parent, *folders_of(folder), HEADERS, PACKAGE))
        found = next((place for place in places if place.is_file()), None)
        # What is not there is the emulator's, which has another body for each wrapper.
        return "" if found is None or found in included else _expanded(found, folder, included, written)

    def replaced(text: str) -> str:
        return INCLUDE.sub(text_of, ONCE.sub("", COMMENT.sub(" ", text)))

    return replaced(file.read_text())
