"""Each notebook's two files say the same, its outputs are those of a run without errors, and it executes on a CPU."""

from pathlib import Path

import jupytext
import nbclient
import nbformat
import pytest

from microbench.paths import PACKAGE

FOLDER = PACKAGE.parent / "notebooks"
SOURCES = sorted(FOLDER.glob("[0-9]*.py"))


def code(notebook: nbformat.NotebookNode) -> list[str]:
    return [cell.source.strip() for cell in notebook.cells]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_executed_notebook_holds_the_source_as_it_is(source: Path) -> None:
    executed = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    assert code(executed) == code(jupytext.read(source)), "run `make notebooks`"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_executed_notebook_has_outputs_and_no_error(source: Path) -> None:
    cells = [
        cell for cell in nbformat.read(source.with_suffix(".ipynb"), as_version=4).cells if cell.cell_type == "code"
    ]
    outputs = [output for cell in cells for output in cell.outputs]
    assert outputs and all(cell.execution_count for cell in cells if cell.source.strip())
    assert not [output for output in outputs if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    # Where a notebook ran stands in none of them.
    assert not [output for output in outputs if "PosixPath(" in str(output)]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_executes_on_a_cpu_from_data(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    monkeypatch.setenv("SMSCOPE_MACHINE", "host-amd-epyc-f26m2-2c")
    execute(source)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_notebook_of_your_machine_opens_a_gpu_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    monkeypatch.setenv("SMSCOPE_MACHINE", "h100-sxm-80gb")
    outputs = execute(FOLDER / "00_your_machine.py")
    assert any("This is h100-sxm-80gb" in output.get("data", {}).get("text/markdown", "") for output in outputs)


def execute(source: Path) -> list[nbformat.NotebookNode]:
    notebook = jupytext.read(source)
    nbclient.NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(FOLDER)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    return outputs
