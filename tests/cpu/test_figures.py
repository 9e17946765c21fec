"""The figures of layouts and instructions say what they were given."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from microbench.layouts import Fragment, Product, draw
from microbench.report import figures_sass
from microbench.report.figures_sass import Work
from microbench.verify.tables import LatencyRow
from tests.cpu.listing import assemble, word


def fragment(name: str, rows: int, columns: int) -> Fragment:
    numbers = np.arange(rows * columns).reshape(rows, columns)
    return Fragment(name, numbers // 2, numbers % 2, 1)


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def frames(axes: Axes) -> int:
    return sum(isinstance(patch, Rectangle) and patch.get_facecolor()[3] == 0 for patch in axes.patches)


def test_a_product_shows_the_lane_of_every_element_and_frames_one() -> None:
    shown = Product(fragment("A", 4, 2), fragment("B", 2, 3), fragment("D", 4, 3))
    figure = draw.product(shown, "a title", mark=1)
    for axes, matrix in zip(figure.axes, (shown.a, shown.b, shown.d), strict=False):
        assert texts(axes)[:-1] == [str(lane) for lane in matrix.thread.ravel()] and frames(axes) == 2
    assert "a title" in [text.get_text() for text in figure.texts]


def test_a_swizzled_tile_shows_where_each_chunk_lies() -> None:
    n, k = np.indices((8, 64))
    figure = draw.swizzled_tile(64 * n + (k // 8 ^ n) * 8 + k % 8, "")
    assert texts(figure.axes[0]) == [str(chunk ^ row) for row in range(8) for chunk in range(8)]
    assert frames(figure.axes[0]) == 8


def test_tensor_memory_names_the_lanes_of_every_warp() -> None:
    lane, column = np.indices((128, 4))
    reach = np.tile(np.eye(4, dtype=np.int64), (2, 1))
    figure = draw.tensor_memory(Fragment("D", lane, column, 1), reach, 512, "", mark=37)
    assert [text for text in texts(figure.axes[0]) if "lanes" in text] == [
        f"warps {w} and {w + 4}: lanes {32 * w} to {32 * w + 31}" for w in range(4)
    ]


def test_a_listing_shows_every_instruction_with_its_bits() -> None:
    code = assemble(
        ("LDG.E R2, [R4.64]", word(stall=4, write=2, read=2)),
        ("HMMA.16816.F32 R4, R4, R12, RZ", word(stall=15, waits=(2,), reuse=0b101)),
    )
    (axes,) = figures_sass.listing(code, ("HMMA",), "sm80").axes
    assert {*(i.text for i in code), "4", "15", "02", "0000", "0010"} <= set(texts(axes))
    assert [text.get_text() for text in axes.texts if text.get_weight() == "bold"] == [code[1].text]
    markers = [line.get_marker() for line in axes.lines]
    assert (markers.count("v"), markers.count("o")) == (2, 1)
    assert [list(line.get_ydata()) for line in axes.lines if line.get_marker() == "None"] == [[0, 1], [0, 1]]


def test_a_latency_table_tells_counted_cycles_from_scoreboards() -> None:
    def row(instruction: str, arch: str, cycles: str, scoreboard: str) -> LatencyRow:
        fields = {"instruction": instruction, "arch": arch, "cycles": cycles, "scoreboard": scoreboard}
        return LatencyRow.model_validate({**fields, "opcode": instruction, "nvrtc": "12.9"})

    rows = (row("FFMA", "sm70", "4", "no"), row("EX2", "sm70", "8", "yes"), row("MMA", "sm80", "6 10", "in part"))
    (axes,) = figures_sass.latency_table(rows, ("sm70", "sm80"), {"EX2": 17.0}, "H100").axes
    assert texts(axes) == ["4", "sb 8", "17", "6/10*"]


def test_work_names_every_instruction() -> None:
    (axes,) = figures_sass.work([Work("a", 4096, 2048), Work("b", 4096, 1500, measured=True)], "").axes
    assert {"a", "b", "1 cycle", "128 cycles"} <= set(texts(axes))
