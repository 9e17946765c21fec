"""A campaign's rows, summed up for data/verification: by variant, padded head dim and feature."""

import hashlib
from collections.abc import Callable, Iterable, Sequence

import torch

from microbench.machine import nvml as clocks
from microbench.verify.forward import ALL, PLAIN, ForwardProblemRow, ForwardRow


def summary(rows: Sequence[ForwardProblemRow]) -> tuple[ForwardRow, ...]:
    """What this machine's rows come to. Raises ValueError where there are none."""
    gpu = clocks.visible_gpus()[0]
    return summed(rows, gpu.slug, clocks.facts(gpu).driver or "", torch.__version__)


def summed(rows: Sequence[ForwardProblemRow], gpu: str, driver: str, version: str) -> tuple[ForwardRow, ...]:
    """One row for each variant, range of head dims and feature."""
    found = []
    for variant in dict.fromkeys(row.variant for row in rows):
        mine = [row for row in rows if row.variant == variant]
        ran = digest(row.cubin for row in mine)
        for head_dims in sorted({row.head_dims for row in mine}, key=lambda text: int(text.partition("-")[0])):
            here = [row for row in mine if row.head_dims == head_dims]
            features = sorted({feature for row in here for feature in row.features})
            for feature in (ALL, PLAIN, *features):
                these = [row for row in here if feature in (ALL, *(row.features or (PLAIN,)))]
                if these:
                    found.append(_row(these, gpu, driver, version, ran, feature))
    return tuple(found)


def cubins(rows: Iterable[ForwardProblemRow]) -> str:
    """A line for each kernel that ran: its variant, and the SHA-256 of its cubin."""
    return "".join(f"{variant} {cubin}\n" for variant, cubin in sorted({(row.variant, row.cubin) for row in rows}))


def digest(cubins: Iterable[str]) -> str:
    """One SHA-256 of a set of cubins, given theirs."""
    return hashlib.sha256("\n".join(sorted(set(cubins))).encode()).hexdigest()


def _row(rows: list[ForwardProblemRow], gpu: str, driver: str, version: str, cubins: str, feature: str) -> ForwardRow:
    def worst(ratio: Callable[[ForwardProblemRow], float | None]) -> float:
        return round(max((ratio(row) or 0.0 for row in rows), default=0.0), 4)

    return ForwardRow(
        gpu=gpu,
        driver=driver,
        torch=version,
        variant=rows[0].variant,
        cubins_sha256=cubins,
        seed=rows[0].seed,
        head_dims=rows[0].head_dims,
        feature=feature,
        problems=len(rows),
        cubins=len({row.cubin for row in rows}),
        failed=sum(not row.ok for row in rows),
        worst_ratio=worst(lambda row: row.error / row.allowed if row.error and row.allowed else 0.0),
        worst_block_ratio=worst(lambda row: row.block_ratio),
        worst_lse_ratio=worst(lambda row: row.lse_ratio),
    )
