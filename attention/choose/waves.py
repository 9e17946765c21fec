"""What memory takes at least where like blocks come in waves, of which the last is not full."""

from attention.choose.prediction import Term


def of_waves(blocks: int, places: int, last_seconds: float, dram: Term) -> Term | None:
    """Blocks of the last wave, which are few, ask DRAM for less than it gives: no less than one of them by itself.

    320 blocks of 1500 keys at head dim 64 took an H200 39.9 us where 264 run at once, and 34.4 where all do (use-23).
    """
    rest = blocks % places
    longer = last_seconds - dram.seconds * rest / blocks
    if blocks <= places or not rest or longer <= 0:
        return None
    return Term("waves of like blocks", "memory", dram.seconds + longer, dram.constant, dram.rate)
