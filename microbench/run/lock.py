"""One run at a time on one device: a lock file in the user's cache folder, freed by the kernel even after a crash."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from microbench import paths
from microbench.errors import BusyError, DataError
from microbench.machine import nvml


@contextmanager
def hold(device: str, wait: bool, say: Callable[[str], None], of: str = "") -> Iterator[None]:
    """Hold `device` ('host', 'cuda:N') for a run; says so once where it must wait. Raises BusyError, DataError.

    `of` names a lock of its own on the device: of those who hold that one, not of every run.
    """
    file = paths.cache() / "locks" / f"{_physical(device)}{f'-{of}' if of else ''}.lock"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(file)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if not wait:
                raise BusyError(f"Another run is measuring {device}; wait for its end and run again.") from None
            say(f"Another run is measuring {device}; this one waits for its end (Ctrl-C stops waiting).")
            lock.acquire()
    except OSError as error:
        raise DataError(
            f"The lock for {device} cannot be made in the cache folder: {error.strerror}; {paths.CACHE_VARIABLE} "
            "names another folder."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _physical(device: str) -> str:
    """The same name for the same GPU, whatever CUDA_VISIBLE_DEVICES says: cuda:0 there may be gpu3 here."""
    if device == "host":
        return "host"
    return f"gpu{nvml.visible_gpus()[int(device.partition(':')[2])].index}"
