"""A machine with a GPU for `smscope verify`: its workers, compiler, doctor and peers answer as a test scripts them."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attention.compare import apart, candidates
from attention.compare.apart import PeersResult
from attention.compare.cells import Cell
from attention.verify import kernel as attention_kernel
from attention.verify.problems import Case, described
from attention.verify.rows import ForwardProblemRow
from microbench import paths
from microbench.compile.together import Compiled
from microbench.emulator import toolchain
from microbench.files import text
from microbench.machine import nvml
from microbench.results import derive
from microbench.results.profile import Profile
from microbench.verify import probed, processes
from microbench.verify.differential import compare
from microbench.verify.differential.score import Held, Score
from microbench.verify.differential.trials import Trial
from microbench.verify.probed import Examined
from microbench.verify.results import Failure
from smscope import cli, verifying
from smscope.verified import board, lacks
from smscope.verified.board import BoardResult
from smscope.verified.record import Record
from tests.cpu.commands import called

HOPPER = nvml.Gpu(0, "NVIDIA H100 80GB HBM3", 80 << 30, (9, 0), False)
TURING = nvml.Gpu(0, "Tesla T4", 15 << 30, (7, 5), False)
KERNEL = "sm90a/forward/warp_specialised"
WHERE = {
    "gpu": "h100-sxm-80gb",
    "name": "NVIDIA H100 80GB HBM3",
    "arch": "sm90a",
    "driver": "580.1",
    "commit": "c0ffee",
    "dirty": False,
    "verified_utc": "2026-01-01T00:00:00+00:00",
    "quick": True,
}


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return called(capsys, cli.main, "verify", *arguments)


@pytest.fixture(name="gpu")
def machine_with_a_gpu(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[nvml.Gpu]:
    """The GPUs of this machine, one Hopper, whose kind has a profile."""
    found = [HOPPER]
    derive.write(Profile(gpu=HOPPER.slug, name=HOPPER.name, arch="sm90a", sm_count=132))
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(nvml, "visible_gpus", lambda: found)
    monkeypatch.setattr(nvml, "facts", lambda gpu: SimpleNamespace(driver="580.1", uuid_sha256="a board"))
    for room in (verifying, lacks):
        monkeypatch.setattr(room, "find_spec", lambda name: object())
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(candidates, "missing", lambda: ("FlashAttention-4",))
    monkeypatch.setattr(board, "verify", lambda device, where, wait, whole: healthy(where))
    monkeypatch.setattr(apart, "verify", lambda cell, device, where: beside(cell, where))
    for room in (probed, compare):
        monkeypatch.setattr(room, "compile_ahead", list)  # whose kernels nobody runs
    monkeypatch.setattr(toolchain, "compiler", lambda: "/a/g++")
    monkeypatch.setattr(toolchain, "runtime", lambda: Path("/a/library"))
    return found


def healthy(where: Mapping[str, Any], *wrong: Failure) -> BoardResult:
    """A board of which the doctor finds these."""
    return BoardResult(**where, nvrtc="12.9.86", cubins=(), failures=wrong, run="a run", reference=None, constants=30)


def beside(cell: Cell, where: Mapping[str, Any]) -> PeersResult:
    """A cell that nobody timed."""
    return PeersResult(**where, nvrtc="", cubins=(), failures=(), cell=str(cell), timings=())


def script(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], Any]) -> None:
    """Workers on a GPU that answer every point of a probe so; wrappers are right there, and copies refused."""

    def of_piece(piece: Any) -> Any:
        if isinstance(piece, Trial):
            return Held() if piece.legal else processes.Failed("its process ended with exit code 1")
        return Held(Score(0, 1e-6), "of a wrapper", "12.9.86") if isinstance(piece, int) else answer(piece[0])

    def answers(families: Sequence[Sequence[Any]], opens: object, lanes: int = 1) -> Iterator[tuple[Any, Any]]:
        for piece in [piece for family in families for piece in family][::-1]:
            yield piece, of_piece(piece)

    monkeypatch.setattr(processes, "answers", answers)


def right(name: str) -> Examined:
    return Examined(2, (f"of {name}",), ("12.9.86",))


def campaign(monkeypatch: pytest.MonkeyPatch, wrong: Sequence[int] = (), lost: int = 0) -> None:
    """A compiler that takes everything, and a supervisor whose GPU errs at some problems and tries not the last."""

    def supervise(cases: Sequence[Case], out: Path, options: list[str]) -> None:
        rows = [row_of(case, "error 2 above 1" if case.index in wrong else "") for case in cases]
        out.write_text(text(rows[: len(rows) - lost]))

    monkeypatch.setattr(attention_kernel, "supervise", supervise)
    monkeypatch.setattr(attention_kernel, "compile_together", lambda sources: Compiled(3, (), "12.9.86"))


def row_of(case: Case, reason: str) -> ForwardProblemRow:
    errors = {"error": 1.0, "allowed": 2.0, "block_ratio": 0.75, "lse_ratio": 0.25}
    told: dict[str, Any] = {**described(case), **errors}
    cubin = case.build.dtype
    return ForwardProblemRow(
        index=case.index, seed=0, cubin=cubin, head_dims="1-64", ok=not reason, reason=reason, **told
    )


def section(page: str, title: str) -> str:
    """What stands under a heading of a run's page."""
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def steps_of(run: Record) -> list[str]:
    """The steps of a run, each once, in the order of its parts."""
    return list(dict.fromkeys(part.step for part in run.parts))
