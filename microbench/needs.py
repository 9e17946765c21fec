"""What a Python without our dependencies is told, in one sentence. Imports nothing but the standard library."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

OURS = ("microbench", "attention")


@contextmanager
def one_sentence(program: bool | None = None) -> Iterator[None]:
    """End the program (exit code 1) where an import lacks a third-party package; who uses a library gets the error.

    Without `program`: while `python -m` still looks for its module, which imports the package first, argv[0] is '-m'.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        asked = sys.argv[0] == "-m" if program is None else program
        if not asked or package in ("", *OURS):
            raise
        sys.exit(
            f"This Python lacks {package}, which smscope needs: `make bench` installs it into .venv, and "
            "`. .venv/bin/activate` then makes that environment yours."
        )
