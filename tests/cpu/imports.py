"""What files import, for tests of lists that have to hold all of it."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path


def imported(start: Iterable[Path], root: Path) -> set[Path]:
    """The files that these import, and what those import, wherever in a file; names of packages aside."""
    found: set[Path] = set()
    ahead = list(start)
    while ahead:
        file = ahead.pop()
        if file not in found:
            found.add(file)
            ahead += [
                each for name in _names(file) if (each := (root / name.replace(".", "/")).with_suffix(".py")).is_file()
            ]
    return found


def _names(file: Path) -> Iterator[str]:
    for each in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(each, ast.ImportFrom) and each.module:
            yield each.module
            yield from (f"{each.module}.{name.name}" for name in each.names)
        elif isinstance(each, ast.Import):
            yield from (name.name for name in each.names)
