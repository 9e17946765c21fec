"""What measures something else is refused, by its machine code or by its results; what is harmless is not."""

from dataclasses import replace
from pathlib import Path

import pytest

from microbench import sass
from microbench.compile import Cubin, compile_all, compile_probe
from microbench.device.emulated import EmulatedGpu
from microbench.machine.arch import by_name
from microbench.measure import emulated
from microbench.probes import named
from microbench.verify.executed import execute_point
from tests.sabotage.edits import EDITS
from tests.sabotage.edits.edit import Edit
from tests.sabotage.sabotaged import build_of, builds_of, point_of, probe_of, source_of

BY_RESULTS = tuple(edit for edit in EDITS if edit.by == "results")


@pytest.fixture(scope="module")
def reasons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Why the contract refuses each, compiled together; '' where it does not."""
    sources = [source_of(edit, tmp_path_factory.mktemp("edit")) for edit in EDITS]
    found = zip(EDITS, compile_all(sources), strict=True)
    return {edit.what: "\n".join(_broken(edit, cubin)) for edit, cubin in found}


def _broken(edit: Edit, cubin: object) -> tuple[str, ...]:
    if not isinstance(cubin, Cubin):
        return (str(cubin),)
    return sass.check(build_of(edit).contract, cubin.instructions(), by_name(edit.arch), cubin.resources)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.what)
def test_the_contract_refuses_what_its_machine_code_shows_and_nothing_else(edit: Edit, reasons: dict[str, str]) -> None:
    if edit.by == "contract":
        assert reasons[edit.what] and edit.says in reasons[edit.what]
    else:
        assert not reasons[edit.what]


@pytest.mark.parametrize("edit", BY_RESULTS, ids=lambda edit: edit.what)
def test_results_refuse_what_the_machine_code_does_not_show(
    edit: Edit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the launch's own check against NumPy, which a GPU's campaign makes before it times."""
    monkeypatch.setattr(emulated, "HEADERS", tmp_path)
    changed = replace(probe_of(edit, tmp_path), builds=lambda point: builds_of(edit, point))
    row = execute_point(changed, point_of(edit), EmulatedGpu(edit.arch))
    assert row.status == "failed" and edit.says in (row.reason or "")


def test_a_schedule_that_waits_longer_than_the_operation_takes_is_refused() -> None:
    """E17 every FFMA stalls 8: a latency of 8 would be the schedule's, not the pipe's."""
    probe, arch = named("ffma_latency"), by_name("sm90a")
    assert probe.builds is not None
    build = probe.builds(next(probe.points()))[0]
    cubin = compile_probe(probe, build, arch)
    image = cubin.image
    for index, _ in sass.stalls(build.contract, cubin.instructions()):
        image = sass.patch_stall(image, cubin.kernel, index, 8)
    slow = sass.parse(image, cubin.kernel, cubin.listing)
    assert "stalls 8 cycles where ptxas leaves 4" in sass.check(build.contract, slow, arch, cubin.resources)[0]
