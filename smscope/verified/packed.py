"""A run inside the file of `smscope verify`: the bytes of data/runs/<gpu>/<run id>.jsonl, a tenth as long.

The file itself, and no extract of it: whoever receives it derives the very profile that it gives where it was measured,
also by rules for reducing a sweep that are not written yet.
"""

import hashlib
import lzma
from base64 import b64decode, b64encode
from pathlib import Path

from pydantic import Field

from microbench.errors import DataError
from microbench.files import Frozen

MOST_BYTES = 64 << 20  # a full run of an H200 has 1.5 MB: what unpacks to more is no run


class PackedRun(Frozen):
    """The run's id, how many lines its file has, a hash of them, and the lines as xz in Base64."""

    run: str = Field(pattern=r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}$")  # it becomes the name of a file
    lines: int
    sha256: str
    xz_base64: str


def pack(file: Path) -> PackedRun:
    """The run in this file. Raises DataError."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise DataError(f"Cannot read {file.name}: {error.strerror}.") from error
    squeezed = b64encode(lzma.compress(data, preset=9)).decode()
    return PackedRun(run=file.stem, lines=data.count(b"\n"), sha256=_sha256(data), xz_base64=squeezed)


def unpack(packed: PackedRun) -> bytes:
    """The file's bytes. Raises DataError where they are not what was packed."""
    damaged = f"The run {packed.run} in this file is damaged; ask for the file again, as an attachment."
    try:
        opened = lzma.LZMADecompressor()
        data = opened.decompress(b64decode(packed.xz_base64, validate=True), MOST_BYTES)
    except (ValueError, lzma.LZMAError, EOFError) as error:
        raise DataError(damaged) from error
    if not opened.eof or _sha256(data) != packed.sha256:
        raise DataError(damaged)
    return data


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
