"""microbench.run.ahead: what a run needs is in the cache before its first campaign, or it is said why it cannot be."""

from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

import pytest

from microbench import paths
from microbench.compile import numba_trial
from microbench.machine.arch import Machine, by_name
from microbench.probe import Probe
from microbench.probes import named
from microbench.run import ahead
from microbench.run.plan import Plan
from tests.elsewhere import ROOT, printed

GPU = Machine("gpu", "GPU", by_name("sm90a"), 132, 1.98e9, None, 1 << 37, 1 << 26)
TWIN = named("smem_bandwidth")
ALONE = named("ffma_latency")
WHY = "numba-cuda 0.30 and NumPy 2.5 do not fit"


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No cubin is on disk, and the pool is a thread, which sees what a test patches."""
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(ahead, "_pool", ThreadPoolExecutor)
    return tmp_path


def built(*probes: Probe) -> tuple[ahead.Built, list[str]]:
    """What came of it, and what was said."""
    said: list[str] = []
    return ahead.build(probes, GPU, True, (), said.append), said


def test_both_methods_are_compiled_once_and_found_afterwards(empty_cache):
    wanted = ahead.missing((TWIN, ALONE), GPU, quick=True)
    assert len(wanted.twins) == len({build for _, build in wanted.twins}) > 0
    assert len(wanted.sources) == len(wanted.twins) + 2
    found, (line,) = built(TWIN, ALONE)
    assert (found.kernels, found.lacking) == (len(wanted), {})
    assert line.startswith(f"Compiling {len(wanted)} kernels in ")
    assert not ahead.missing((TWIN, ALONE), GPU, quick=True)
    assert built(TWIN, ALONE) == (ahead.Built(), [])


def test_where_no_twin_compiles_its_probes_lack_the_second_method_and_that_is_said_once(empty_cache, monkeypatch):
    monkeypatch.setattr(numba_trial, "why_not", lambda _: WHY)
    found, said = built(TWIN, named("smem_latency"), ALONE)
    assert found.lacking == {"smem_bandwidth": WHY, "smem_latency": WHY}
    assert sum(WHY in line for line in said) == 1
    assert not ahead.missing((TWIN,), GPU, quick=True).sources


def test_a_twin_that_is_in_the_cache_needs_no_compiler(empty_cache, monkeypatch):
    built(TWIN)
    monkeypatch.setattr(numba_trial, "why_not", lambda _: WHY)
    assert built(TWIN, named("smem_latency"))[0].lacking == {"smem_latency": WHY}


def test_a_probe_without_its_second_method_is_one_unsupported_row_and_no_task():
    lacking = Plan("r", (TWIN, ALONE), GPU, quick=True, lacking={TWIN.name: WHY})
    assert {task.method for task in lacking.tasks(0)} == {"nvrtc"}
    ((task, reason),) = lacking.unsupported()
    assert (task.probe, task.method, reason) == (TWIN, "numba", WHY)
    whole = Plan("r", (TWIN, ALONE), GPU, quick=True)
    assert {task.method for task in whole.tasks(0)} == {"nvrtc", "numba"} and not list(whole.unsupported())


class Dying(ThreadPoolExecutor):
    """A pool whose processes the kernel ends."""

    def submit(self, *_: object, **__: object) -> object:  # type: ignore[override]
        raise BrokenProcessPool


def test_a_pool_that_dies_leaves_the_work_to_the_workers(empty_cache, monkeypatch):
    def dying(processes: int) -> Executor:
        return Dying(processes)

    monkeypatch.setattr(ahead, "_pool", dying)
    found, said = built(TWIN)
    assert found == ahead.Built() and "died" in said[-1]


def test_a_probe_whose_builds_cannot_be_named_is_left_to_its_rows(empty_cache):
    def wrong(_: object) -> tuple[()]:
        raise ValueError("no such point")

    assert built(replace(ALONE, builds=wrong)) == (ahead.Built(), [])


# NumPy 2.5 as numba-cuda 0.30 meets it: the probes are there, and one function is not.
WITHOUT_ROW_STACK = """
import numpy, scipy.optimize
from microbench.compile.numba_trial import why_not
from microbench.machine.arch import by_name
vars(numpy).pop("row_stack", None)
print(why_not(by_name("sm90a")))
"""


def test_the_least_kernel_compiles_here_and_not_where_numpy_lacks_what_numba_asks_for(tmp_path):
    assert numba_trial.why_not(by_name("sm90a")) == ""
    told = printed(WITHOUT_ROW_STACK, PYTHONPATH=str(ROOT), SMSCOPE_CACHE=str(tmp_path))
    assert told.startswith("numba-cuda cannot compile any kernel here (numba-cuda ")
    assert told.strip().endswith("AttributeError: module 'numpy' has no attribute 'row_stack'")
