"""Forward and backward beside torch's default: CUDA graph replays in turns, gradients against float64.

    python -m attention.compare.training        appends to data/attention/<gpu>-training.jsonl

Every cell of the grid and two with grouped heads. Gradients of the first key head, and of its group of query heads, are
computed in float64 on the GPU; ours may err as far from them as the forward's rule allows beside torch's default.
"""

import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

from attention.compare import cells, rows
from attention.compare.cells import Cell
from attention.compare.graphed import Graphed
from attention.compare.run import opened
from attention.oracle import exact_gradients, reference
from attention.problem import AttentionProblem
from attention.timed import timings
from attention.timed.timing import Timing
from microbench.console.progress import watching
from microbench.device.cuda import CudaDevice
from microbench.measure.alternate import alternate

KIND = "training"
TORCH, OURS = "training/torch", "training/attention.sdpa"


def training_cells() -> tuple[Cell, ...]:
    """The peers' grid, and two causal cells with grouped heads."""
    grouped = ((4, 32, 4, 4096), (2, 32, 8, 8192))
    return (
        *cells.grid(),
        *(
            Cell(AttentionProblem(b, hq, hkv, n, n, 128, dtype="bfloat16", device="cuda", causal=True))
            for b, hq, hkv, n in grouped
        ),
    )


def compare() -> list[Timing]:
    """Time every cell on the current GPU; what was timed is on file when a cell ends."""
    run, device = rows.new_run(), opened()
    found: list[Timing] = []
    chosen = training_cells()
    with watching(len(chosen)) as watcher:
        for cell in chosen:
            watcher.doing(str(cell), "checking and timing")
            for timing in _one(device, cell, run):
                timings.write(timing, KIND)
                found.append(timing)
            watcher.finished()
    return found


def _one(device: CudaDevice, cell: Cell, run: str) -> list[Timing]:
    import torch

    import attention

    problem = cell.problem
    given = cells.tensors(cell, "cuda")
    inputs = [each.requires_grad_() for each in (given.query, given.key, given.value)]
    d_out = torch.randn_like(given.query)
    gqa = problem.heads_q != problem.heads_kv

    def step(function: Any) -> Callable[[], tuple[Any, ...]]:
        return lambda: torch.autograd.grad(function(*inputs, is_causal=problem.causal, enable_gqa=gqa), inputs, d_out)

    steps = {TORCH: step(torch.nn.functional.scaled_dot_product_attention), OURS: step(attention.sdpa)}
    query, key, value = (each.detach() for each in inputs)
    wanted = exact_gradients.gradients(problem, query, key, value, d_out)
    parts = {name: exact_gradients.checked(problem, run_step()) for name, run_step in steps.items()}
    errors = {
        name: [
            reference.compare(got, want, low, problem.dtype)
            for got, want, low in zip(found, wanted, parts[TORCH], strict=True)
        ]
        for name, found in parts.items()
    }
    graphs = {name: Graphed(call) for name, call in steps.items()}
    replays = {name: graph.replay for name, graph in graphs.items()}
    timed = alternate(device, replays, run, torch.cuda.current_stream().cuda_stream, sustained=tuple(replays))
    return [
        rows.row(
            device.machine,
            cell,
            name,
            timed[name],
            max(errors[name], key=lambda each: each.error / each.allowed),
            run=run,
            captured=graphs[name].captured,
            packages={"torch": metadata.version("torch"), "cudnn": str(torch.backends.cudnn.version())},  # type: ignore[no-untyped-call]
            passes="forward and backward",
        )
        for name in steps
    ]


if __name__ == "__main__":
    for row in compare():
        error = f"error {row.error:.3g} of {row.allowed_error:.3g}"
        sys.stdout.write(f"{row.problem} {row.variant}: {row.seconds * 1e6:.1f} us, {error}\n")
