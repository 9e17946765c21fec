"""Files that are there whole or not at all, whatever ends the process or fills the disk."""

import os
import tempfile
from pathlib import Path


def put(path: Path, data: str | bytes, mode: int = 0o644) -> None:
    """Write a file and its folder; who reads it meanwhile sees what was there before. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
            temporary = Path(file.name)
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)  # a temporary file is its owner's alone
        temporary.replace(path)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise
