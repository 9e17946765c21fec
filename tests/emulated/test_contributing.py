"""The kernel that CONTRIBUTING.md shows runs as it stands, and races without its barrier, as it says."""

import re
from pathlib import Path

import pytest

from microbench.errors import DeviceError

SECTION = "## A kernel on the emulator"


def block() -> str:
    """The Python block of the section."""
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", text[text.index(SECTION) :], re.DOTALL)
    assert found, f"{SECTION} holds no Python"
    return found[1]


def test_the_example_runs() -> None:
    exec(compile(block(), "CONTRIBUTING.md", "exec"), {})


def test_the_example_races_without_its_barrier() -> None:
    broken = block().replace("  __syncthreads();\n", "")
    assert broken != block()
    with pytest.raises(DeviceError, match=r"race: .* by thread \d+ .* by thread \d+"):
        exec(compile(broken, "CONTRIBUTING.md", "exec"), {})
