"""microbench.compile.host_code: raw loads, and a compile cache of our own."""

from pathlib import Path

import numba
import numpy as np
import pytest

from microbench import paths
from microbench.compile.host_code import compiled, load_word


def test_load_word_reads_a_raw_address() -> None:
    @numba.njit
    def read(address: int) -> int:
        return load_word(address)

    words = np.array([11, 22], np.uint64)
    address = words.__array_interface__["data"][0]
    assert [read(np.uint64(address + 8 * i)) for i in range(2)] == [11, 22]


def test_compiled_code_is_kept_in_our_own_folder_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(paths.CACHE_VARIABLE, str(tmp_path))
    before = numba.config.CACHE_DIR
    kernel = compiled()(_double)
    assert before == numba.config.CACHE_DIR
    assert kernel(21) == 42
    assert list((tmp_path / "numba").rglob("*.nbi"))


def _double(value: int) -> int:
    return 2 * value
