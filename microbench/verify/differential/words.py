"""Bytes on their way, and arithmetic on single words: bulk copies, cp.async, loads and stores, ffma, ex2, packing."""

from functools import partial

import numpy as np

from microbench.verify.differential.case import EX2_TOLERANCE, Array, Buffer, Case, Launch


def copy_bytes(seeds: range) -> list[Launch]:
    """8 KiB by a bulk copy."""
    given = np.stack([np.random.default_rng(s).integers(0, 1 << 32, 2048).astype(np.uint32) for s in seeds])
    args = (Buffer(0), Buffer(1), 2048)
    return [Launch((len(seeds),), (32,), 32776, (given, np.zeros_like(given)), args, (1,), (given,))]


def move_words(seeds: range) -> list[Launch]:
    """Words through shared memory by every way there is."""
    given = np.stack([np.random.default_rng(s).integers(0, 1 << 32, (128, 4)).astype(np.uint32) for s in seeds])
    found = np.zeros((len(seeds), 7, 128, 4), np.uint32)
    return [Launch((len(seeds),), (128,), 7 * 2048, (given, found), (Buffer(0), Buffer(1)), (1,))]


def arithmetic(output: int, seeds: range) -> list[Launch]:
    """The instruction whose results this output is, on random floats."""
    rngs = [np.random.default_rng(seed) for seed in seeds]
    # Over 2^-20 to 2^20 for the exact ones, so that roundings of every kind occur; ex2 has its own range.
    scale = 8.0 if output == 4 else 1.0
    x, y, z = (
        np.stack([rng.standard_normal(128) * (scale if output == 4 else 2.0 ** rng.integers(-12, 13)) for rng in rngs])
        for _ in range(3)
    )
    floats = [each.astype(np.float32) for each in (x, y, z)]
    arrays: tuple[Array, ...] = (*floats, *np.zeros((4, len(seeds), 128), np.float32))
    words: tuple[Array, ...] = tuple(each.view(np.uint32) if i > 4 else each for i, each in enumerate(arrays))
    return [Launch((len(seeds),), (128,), 0, words, tuple(map(Buffer, range(7))), (output,))]


def cases() -> list[Case]:
    """One layout each."""
    made = [Case("cp_async, memory, barrier", "4, 8, 16 bytes", "bits", "move_words", (("WAYS", 1),), move_words)]
    for name, output, off in (("ffma", 3, 0.0), ("ex2", 4, EX2_TOLERANCE), ("pack_f16", 5, 0.0), ("pack_bf16", 6, 0.0)):
        run = partial(arithmetic, output)
        made.append(Case(name, "", "normal", "arithmetic", (("ARITHMETIC", 1),), run, off))
    made.append(Case("bulk copy, mbarrier", "8192 bytes", "bits", "copy_bytes", (("BYTES", 1),), copy_bytes))
    return made
