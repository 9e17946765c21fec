"""Mistakes in how a sequence uses a part of its slot alone, and cases in which each shows."""

from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_planted import Bug

# Padding on both sides, a sequence without keys, one without queries, one that pads more than it uses, whole slots.
RANGES = ((100, 180, 5), (140, 0, 0), (0, 90, 10), (37, 60, 70), (140, 203, 0), (65, 203, 133))
CASE = ForwardCase(batch=6, seq_q=140, seq_kv=203, ranges=RANGES, right=0, aligned="bottom_right", sinks=True)
USE, WORK, UNUSED = "void use_ranges(", "Work work_of(", "void store_unused("
BUGS = {
    "keys are counted with their padding": Bug(
        "features/ranges.cuh", USE, "work.keys -= work.skipped;", says="out of bounds"
    ),
    "keys begin where the slot does": Bug("features/ranges.cuh", USE, "work.key_start += work.skipped;"),
    "every query is used": Bug(
        "features/ranges.cuh", USE, "min(work.queries, launch.seqused_q[work.batch])", "work.queries"
    ),
    "every key is used": Bug("features/ranges.cuh", USE, "min(work.keys, launch.seqused_k[work.batch])", "work.keys"),
    "the band stays on the slot's diagonal": Bug(
        "work.cuh", WORK, "kOwnLengths ? launch.moves * (work.keys - work.queries) : 0", "63"
    ),
    "rows that are not used are left": Bug("store.cuh", UNUSED, "mine < work.queries || mine >= work.rows", "true"),
    "rows of the next sequence are cleared": Bug(
        "store.cuh", UNUSED, "mine >= work.rows", "mine > work.rows + 2", says="race between blocks|wrote beside"
    ),
    "a sink is the lse of what is not used": Bug(
        "store.cuh", UNUSED, "minus_infinity()", "launch.sinks[0]", says="lse: "
    ),
}
