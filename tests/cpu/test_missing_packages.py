"""Packages that a verb lacks are named all at once, with the one command that installs them."""

import pytest

import microbench.cli
from microbench.compile import nvrtc
from microbench.errors import EnvironmentLacks
from microbench.machine import tools
from microbench.verify import show
from microbench.verify.matrix import Checked
from tests.cpu.commands import called


def test_who_lacks_nvrtc_and_nvdisasm_hears_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "candidates", lambda: iter(()))
    monkeypatch.setattr(tools, "nvdisasm", lambda: None)
    with pytest.raises(
        EnvironmentLacks, match=r"pip install nvidia-cuda-nvrtc-cu12==12\.9\.86 nvidia-cuda-nvdisasm \("
    ):
        nvrtc.choose("12.9", 70)
    monkeypatch.setattr(tools, "nvdisasm", lambda: "/usr/bin/nvdisasm")
    with pytest.raises(EnvironmentLacks, match=r"pip install nvidia-cuda-nvrtc-cu12==12\.9\.86 \("):
        nvrtc.choose("12.9", 70)


def test_a_matrix_that_lacks_several_ends_with_one_command_for_all() -> None:
    reasons = (tools.install((tools.NVRTC, tools.NVDISASM)), tools.install((tools.NUMBA_CUDA,)))
    rows = [Checked("one", "sm70", "-", (reason,), compiled=False) for reason in reasons]
    *_, last = show._broken(rows)
    assert last.endswith(f": pip install {tools.NVRTC} {tools.NVDISASM} {tools.NUMBA_CUDA}")
    assert not any("one command" in line for line in show._broken(rows[1:]))


def test_a_report_names_all_that_draws_its_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(microbench.cli, "find_spec", lambda _: None)
    code, out, err = called(capsys, microbench.cli.main, "report")
    assert code != 0 and not out and "matplotlib and seaborn" in err and "`pip install matplotlib seaborn`" in err
