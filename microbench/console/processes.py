"""Processes that work beside this one, and end where it is interrupted."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context


@contextmanager
def beside(count: int | None = None) -> Iterator[ProcessPoolExecutor]:
    """So many of them, or one a core: spawned, since a process that has opened a GPU must not be copied.

    Whoever leaves by an exception waits for nothing: what is handed out is dropped, and what is under way terminated.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    pool.shutdown()
