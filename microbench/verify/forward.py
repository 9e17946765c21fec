"""What a GPU's attention forward gave on random problems: data/verification/forward-<gpu>.jsonl.

A campaign writes a row for every problem; the committed file sums them up by variant, head dim and feature.
"""

from pathlib import Path
from typing import TypeVar

from microbench import paths
from microbench.files import Frozen
from microbench.files import read as read_rows

# What stands in the place of a feature: every problem, and those without any.
ALL, PLAIN = "all", "none"


class ForwardProblemRow(Frozen):
    """One problem, as the campaign met it. Errors are None where the kernel gave nothing, or something not finite."""

    index: int
    seed: int
    variant: str
    config: str
    cubin: str  # SHA-256 of the image
    problem: str
    head_dim: int
    head_dims: str  # those that share a padded size: '65-96'
    dtype: str
    features: tuple[str, ...]
    layouts: tuple[str, str, str]  # where query, key and value lie in memory
    values: str
    scale: float
    lengths: tuple[tuple[int, int], ...]
    mask: str
    ok: bool
    reason: str
    error: float | None = None  # the largest of out
    allowed: float | None = None  # twice that of torch operations in low precision, one rounding unit, and underflow
    block_ratio: float | None = None  # error over what is allowed, of the worst 64 rows of a head
    lse_ratio: float | None = None  # likewise of lse


class ForwardRow(Frozen):
    """All problems of one variant, one padded head dim and one feature; a problem of two features counts in both."""

    gpu: str
    driver: str
    torch: str
    variant: str
    cubins_sha256: str  # of the sorted digests of every cubin that ran, over all rows of the variant
    seed: int
    head_dims: str
    feature: str
    problems: int
    cubins: int
    failed: int
    worst_ratio: float  # error over what is allowed, of whole tensors
    worst_block_ratio: float
    worst_lse_ratio: float


Row = TypeVar("Row", ForwardProblemRow, ForwardRow)


def path(gpu: str) -> Path:
    """Where the committed rows of a GPU lie."""
    return paths.SHIPPED / "verification" / f"forward-{gpu}.jsonl"


def files() -> tuple[Path, ...]:
    """Every committed summary, by name."""
    return tuple(sorted((paths.SHIPPED / "verification").glob("forward-*.jsonl")))


def read(file: Path, kind: type[Row]) -> tuple[Row, ...]:
    """The rows of a file. Raises DataError where it cannot be read."""
    return read_rows(file, kind, "run the campaign there again")
