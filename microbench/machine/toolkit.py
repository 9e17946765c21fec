"""Where a piece of the CUDA toolkit lies: in a wheel of this environment, else in an installed toolkit."""

import os
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path


def wheel_files(distributions: tuple[str, ...], pattern: str) -> Iterator[tuple[Path, str]]:
    """(file, wheel version) for every installed file of these wheels whose name matches `pattern` in full."""
    for name in distributions:
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        for file in distribution.files or ():
            located = Path(str(distribution.locate_file(file)))
            if re.fullmatch(pattern, file.name) and located.is_file():
                yield located, distribution.version


def roots() -> list[Path]:
    """Folders of installed toolkits: CUDA_HOME, CUDA_PATH, and where NVIDIA's own installer puts one."""
    named = [os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH")]
    folders = [Path(folder) for folder in named if folder] + [Path("/usr/local/cuda")]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]
