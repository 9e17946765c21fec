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


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_executes_on_a_cpu_from_data(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    notebook = jupytext.read(source)
    nbclient.NotebookClient(notebook, timeout=100, resources={"metadata": {"path": str(FOLDER)}}).execute()
    assert not [o for cell in notebook.cells for o in cell.get("outputs", []) if o.output_type == "error"]
