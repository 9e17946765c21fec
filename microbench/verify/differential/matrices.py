"""ldmatrix and stmatrix: rows of eight 16-bit values from and to anywhere in shared memory."""

from functools import partial

import numpy as np

from microbench.verify.differential.case import Buffer, Case, Launch


def load_matrices(count: int, seeds: range) -> list[Launch]:
    """Ldmatrix of so many matrices."""
    rngs = [np.random.default_rng(seed) for seed in seeds]
    image = np.stack([rng.integers(0, 1 << 16, (64, 8)).astype(np.uint16) for rng in rngs])
    chosen = np.stack([rng.permutation(64)[:32] for rng in rngs])
    plain, trans = np.zeros((2, len(seeds), 32, count, 2), np.uint16)
    arrays = image, (chosen * 16).astype(np.uint32), plain, trans
    matrices = np.take_along_axis(image, chosen[:, : 8 * count, None], 1).reshape(-1, count, 8, 8)
    lane, half = np.indices((32, 2))
    by_rows = matrices[:, :, lane // 4, lane % 4 * 2 + half].swapaxes(1, 2)
    by_columns = matrices[:, :, lane % 4 * 2 + half, lane // 4].swapaxes(1, 2)
    args = tuple(map(Buffer, range(4)))
    return [Launch((len(seeds),), (32,), 1024, arrays, args, (2, 3), (by_rows, by_columns))]


def store_matrices(count: int, seeds: range) -> list[Launch]:
    """Stmatrix of so many matrices."""
    rngs = [np.random.default_rng(seed) for seed in seeds]
    fragment = np.stack([rng.integers(0, 1 << 16, (32, count, 2)).astype(np.uint16) for rng in rngs])
    order = np.stack([rng.permutation(8 * count) for rng in rngs])
    rows = np.tile(order, 4)[:, :32] if count < 4 else order
    plain, trans = np.zeros((2, len(seeds), 8 * count, 8), np.uint16)
    arrays = fragment, (rows * 16).astype(np.uint32), plain, trans
    lane, half = np.indices((32, 2))
    matrices = np.empty((len(seeds), count, 8, 8), np.uint16)
    matrices[:, :, lane // 4, lane % 4 * 2 + half] = fragment.swapaxes(1, 2)
    expected = tuple(np.empty_like(each) for each in (plain, trans))
    for of, stored in zip(expected, (matrices, matrices.swapaxes(2, 3)), strict=True):
        np.put_along_axis(of, order[:, :, None], stored.reshape(of.shape), 1)
    return [Launch((len(seeds),), (32,), 1024, arrays, tuple(map(Buffer, range(4))), (2, 3), expected)]


def cases() -> list[Case]:
    """One, two and four matrices, each as it is and transposed."""
    made = []
    for n in (1, 2, 4):
        for kernel, function, name in (
            ("load_matrices", load_matrices, "ldmatrix"),
            ("store_matrices", store_matrices, "stmatrix"),
        ):
            made.append(Case(name, f"x{n} and trans", "bits", kernel, (("MATRICES", n),), partial(function, n)))
    return made
