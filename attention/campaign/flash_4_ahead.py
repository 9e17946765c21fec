"""FlashAttention-4's classes compiled before a campaign times them: in processes of their own, side by side.

Its compiler takes some fifteen seconds a class on one core, and what it made ends with the process, but where its disk
cache is on (flash_attn/cute/cache_utils.py): so it is switched on here, for the processes and for this one, which must
not have imported it before. A class that is not compiled here is compiled where it is first called.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path

from attention.campaign import rivals
from attention.campaign.plan import Job
from attention.campaign.posed import Posed
from attention.compare.candidates import FLASH_4, Candidate
from microbench import paths
from microbench.console.processes import beside
from microbench.console.progress import say, watching
from microbench.console.si import counted

ENABLED, FOLDER = "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED", "FLASH_ATTENTION_CUTE_DSL_CACHE_DIR"
MOST_PROCESSES = 12  # each has a context on the GPU, and tensors of one sequence


@dataclass(frozen=True)
class _Class:
    """What is compiled once, the first problem of it, and where it is noted that it was."""

    key: tuple[object, ...]
    posed: Posed
    note: Path


def compiled(todo: Sequence[Job], fits: Callable[[float], bool]) -> tuple[Job, ...]:
    """The jobs, of which those have no compiler's time left whose class was tried here, or before.

    `fits`: whether so many seconds fit what is left of a budget; what does not is left to the calls.
    """
    peer = next((each for job in todo for each in job.peers if each.name == FLASH_4), None)
    if peer is None:
        return tuple(todo)
    _switch_on()
    every = tuple(_classes(todo, peer))
    missing = [each for each in every if not each.note.exists()]
    if missing:
        say(f"FlashAttention-4 compiles {counted(len(missing), 'kernel')} ahead.")
        _compile(missing, fits)
    done = {each.key for each in every if each.note.exists()}
    return tuple(replace(job, jit_s=0.0) if rivals.flash_4_classes(job.posed.problem) <= done else job for job in todo)


def _switch_on() -> None:
    os.environ.setdefault(ENABLED, "1")
    os.environ.setdefault(FOLDER, str(paths.cache() / "flash-attn-4"))


def _classes(todo: Sequence[Job], peer: Candidate) -> Iterator[_Class]:
    seen: set[tuple[object, ...]] = set()
    for job in todo:
        for key in rivals.flash_4_classes(job.posed.problem) - seen:
            seen.add(key)
            name = hashlib.sha256(repr((peer.version, key)).encode()).hexdigest()[:16]
            yield _Class(key, job.posed, Path(os.environ[FOLDER]) / f"{name}.tried")


def _compile(missing: Sequence[_Class], fits: Callable[[float], bool]) -> None:
    """Each in turn while it fits, as many at a time as there are cores; what fails is told, and is a peer's refusal."""
    waiting = list(reversed(missing))
    processes = min(os.cpu_count() or 1, MOST_PROCESSES, len(missing))
    running: dict[Future[str], _Class] = {}
    with watching(len(missing)) as watcher, beside(processes) as pool:
        while running or waiting:
            while waiting and len(running) < processes and fits(rivals.JIT_S):
                one = waiting.pop()
                running[pool.submit(compile_one, one.posed)] = one
            if not running:
                say(f"{counted(len(waiting), 'kernel')} of FlashAttention-4 did not fit the budget.")
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                one = running.pop(done)
                try:
                    refused = done.result()
                except BrokenProcessPool:
                    say(
                        "A process that compiled FlashAttention-4 died; what is missing is compiled where it is called."
                    )
                    return
                watcher.doing("compile FlashAttention-4", str(one.posed))
                watcher.finished()
                if refused:
                    watcher.say(f"FlashAttention-4 on {one.posed}: {refused}")
                one.note.parent.mkdir(parents=True, exist_ok=True)
                one.note.touch()


def compile_one(posed: Posed) -> str:
    """Call it once on one sequence of a problem, which leaves its kernel in the cache; why that failed, else ''."""
    try:
        import torch

        from attention.campaign import checked
        from attention.compare.candidates import peers

        problem = posed.problem if posed.lengths else replace(posed.problem, batch=1)
        one = replace(posed, problem=problem, used=posed.used[:1])
        (peer,) = (each for each in peers(flex=False) if each.name == FLASH_4)
        given = checked.inputs(one, torch.device("cuda", torch.cuda.current_device()))
        with torch.no_grad():
            peer.prepare(problem, given)()
        torch.cuda.synchronize()
    except Exception as failure:  # a peer may fail in any way, and says so again where it is timed
        return (str(failure).splitlines() or [repr(failure)])[0][:200]
    return ""
