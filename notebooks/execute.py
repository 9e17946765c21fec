"""Execute notebooks in place, from data/, with the project on the path and no timestamps in the result.

`make notebooks` runs this: an unchanged notebook over unchanged data gives the same file again.
"""

import base64
import io
import os
import sys
from pathlib import Path

import nbclient
import nbformat
from PIL import Image

FOLDER = Path(__file__).resolve().parent
SECONDS_A_CELL = 300
# The machine of 00_your_machine where it is committed: its outputs must not depend on who executed it.
COMMITTED_MACHINE = "host-amd-epyc-f26m2-2c"


def compact(png: str) -> str:
    """The picture, in base64, with a palette of 256 colours: a third of the bytes, and no difference to be seen."""
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    written = io.BytesIO()
    picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(written, "png", optimize=True)
    return base64.b64encode(written.getvalue()).decode()


def execute(path: Path) -> None:
    """Run every cell and write the outputs back. A cell's error is raised, and the file stays as it was."""
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=SECONDS_A_CELL, record_timing=False, resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output["data"]["image/png"] = compact(output["data"]["image/png"])
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(FOLDER.parent), os.environ.get("PYTHONPATH"))))
    os.environ.setdefault("SMSCOPE_MACHINE", COMMITTED_MACHINE)
    for name in sys.argv[1:]:
        sys.stdout.write(f"{name}\n")
        execute(Path(name))
