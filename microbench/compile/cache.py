"""The cubins on disk: private, content-checked, and safe for processes that write at the same time.

    cubin/<sha256 of the image>.cubin     what a driver loads
    cubin/<key>.entry                     a digest line, then the JSON of Entry, which names its image

Files appear whole, by rename; the entry appears last. Whatever does not match its digest counts as absent.
"""

import hashlib
import tempfile
from pathlib import Path

from pydantic import ValidationError

from microbench import files, paths
from microbench.errors import DataError
from microbench.files import Frozen
from microbench.sass.cubin import Resources


class Entry(Frozen):
    """What is kept beside an image, so that a hit needs neither NVRTC nor nvdisasm."""

    sha256: str
    nvrtc: str
    log: str
    listing: str
    compile_seconds: float
    registers: int
    smem_bytes: int
    local_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    barriers: int
    code_bytes: int


def entry_of(image: bytes, used: Resources, nvrtc: str, log: str, listing: str, seconds: float) -> Entry:
    known = {"sha256": digest(image), "nvrtc": nvrtc, "log": log, "listing": listing, "compile_seconds": seconds}
    return Entry.model_validate(known | vars(used))


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def image_path(sha256: str) -> Path:
    return _folder() / f"{sha256}.cubin"


def require_writable() -> None:
    """Raise DataError where nothing can be kept: said once, before hundreds of kernels would each say it."""
    try:
        with tempfile.NamedTemporaryFile(dir=_folder(), prefix=".new-"):
            pass
    except OSError as error:
        raise _refused(error) from error


def read(key: str) -> tuple[bytes, Entry] | None:
    """(image, entry) of a key; None where either is absent, damaged, or of another layout."""
    try:
        head, _, body = (_folder() / f"{key}.entry").read_bytes().partition(b"\n")
        if head.decode("ascii", "replace") != digest(body):
            return None
        entry = Entry.model_validate_json(body)
        image = image_path(entry.sha256).read_bytes()
    except (FileNotFoundError, ValidationError):
        return None
    except OSError as error:
        raise _refused(error) from error
    return (image, entry) if digest(image) == entry.sha256 else None


def write(key: str, image: bytes, entry: Entry) -> None:
    """Keep an image and its entry. Raises DataError where the folder cannot be written."""
    write_image(image)
    body = entry.model_dump_json().encode()
    _replace(_folder() / f"{key}.entry", digest(body).encode() + b"\n" + body)


def write_image(image: bytes) -> Path:
    """Keep an image by its content, for cupy.RawModule(path=...). Raises DataError."""
    path = image_path(digest(image))
    _replace(path, image)
    return path


def _folder() -> Path:
    """The cache folder, made and kept at mode 0700: a driver runs what lies here."""
    folder = paths.cache() / "cubin"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise _refused(error) from error
    return folder


def _replace(path: Path, data: bytes) -> None:
    try:
        files.put(path, data, mode=0o600)
    except OSError as error:
        raise _refused(error) from error


def _refused(error: OSError) -> DataError:
    return DataError(
        f"The cubin cache cannot be used ({error.strerror}); free some space, or point {paths.CACHE_VARIABLE} at "
        "a folder of your own."
    )
