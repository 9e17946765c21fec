"""Where the tests' kernels lie: beside this file, or with those that a GPU is held against the emulator by."""

from pathlib import Path

from microbench.verify.differential.case import KERNELS

FOLDERS = (Path(__file__).parent, KERNELS.parent)


def source_of(name: str) -> tuple[str, str]:
    """(text, file name) of a kernel."""
    return next(folder / name for folder in FOLDERS if (folder / name).is_file()).read_text(), name
