"""Libraries of the emulator: kept in the cache, and built again where one is damaged or its machine is gone."""

import ctypes
import shutil
from pathlib import Path

import numpy as np
import pytest

from microbench import paths
from microbench.emulator import EmulatedDevice, toolchain
from microbench.errors import EnvironmentLacks


def test_a_library_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = toolchain.runtime()
    monkeypatch.setattr(toolchain, "runtime", lambda: built)
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    source = 'extern "C" __global__ void nothing() {}'
    first = toolchain.build_kernel(source, "nothing.cu", "nothing", ())
    written = first.stat().st_mtime_ns
    assert toolchain.build_kernel(source, "nothing.cu", "nothing", ()) == first
    assert first.stat().st_mtime_ns == written
    assert toolchain.build_kernel(source + "\n", "nothing.cu", "nothing", ()) != first


DAMAGE = {
    "truncated": lambda whole: whole[: len(whole) // 2],
    "empty": lambda whole: b"",
    "text": lambda whole: b"not a library\n",
    "flipped": lambda whole: whole[:900] + bytes([whole[900] ^ 1]) + whole[901:],
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_library_is_built_again(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = toolchain.runtime()
    monkeypatch.setattr(toolchain, "runtime", lambda: built)
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    source = 'extern "C" __global__ void nothing() {}'
    kept = toolchain.build_kernel(source, "nothing.cu", "nothing", ())
    kept.write_bytes(DAMAGE[kind](kept.read_bytes()))
    again = toolchain.build_kernel(source, "nothing.cu", "nothing", ())
    assert again == kept and ctypes.PyDLL(str(again)).smscope_launch


def test_a_damaged_runtime_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_nothing(command: list[str], name: str) -> None:
        Path(command[-1]).write_bytes(b"linked")

    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(toolchain, "_run", compile_nothing)
    kept = toolchain._runtime.__wrapped__(toolchain._folder())
    whole = kept.read_bytes()
    kept.write_bytes(whole[:10])
    assert toolchain._runtime.__wrapped__(toolchain._folder()) == kept and kept.read_bytes() == whole


def test_without_a_compiler_the_emulator_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentLacks, match=r"neither g\+\+ nor clang\+\+"):
        toolchain.compiler.__wrapped__()


def test_a_kernel_whose_machine_was_cleared_away_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, words = (
        'extern "C" __global__ void cleared(int* out) { if (!threadIdx.x) out[0] = 7; }',
        np.zeros(1, np.int32),
    )
    libraries, machine = [], toolchain.runtime()
    for folder in ("gone", "kept"):
        monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path / folder))
        shutil.copy(machine, toolchain._folder())
        libraries.append(toolchain.build_kernel(source, "cleared.cu", "cleared", ()))
    shutil.copy(*libraries)
    shutil.rmtree(tmp_path / "gone")
    EmulatedDevice().load(source, "cleared.cu", kernel="cleared")((1,), (32,), (words,), 0)
    assert words[0] == 7
