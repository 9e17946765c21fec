"""Loads and stores as contracts name them, with all modifiers.

Volta and Turing print a scope behind every global access, and LDS.U for a load from shared memory.
"""

from microbench.probe import OpCount

PAST_L1 = ".STRONG.GPU"  # ld.cg


def load(bits: int, count: int) -> OpCount:
    """ld.global of this width, through the L1."""
    return _global("LDG.E", bits, count)


def load_past_l1(bits: int, count: int) -> OpCount:
    """The same past the L1 (ld.cg). Through it is right too, where no line is met twice before it has left the L1."""
    plain = _global("LDG.E", bits, count)
    return OpCount(plain.opcode + PAST_L1, count, (plain.opcode, *plain.also))


def store(bits: int, count: int) -> OpCount:
    """st.global of this width."""
    return _global("STG.E", bits, count)


def load_shared(bits: int, count: int) -> OpCount:
    """ld.shared of this width, of no less than 32 bits."""
    width = "" if bits == 32 else f".{bits}"
    return OpCount(f"LDS{width}", count, (f"LDS.U{width}",))


def _global(head: str, bits: int, count: int) -> OpCount:
    opcode = head if bits == 32 else f"{head}.{bits}"
    return OpCount(opcode, count, (f"{opcode}.SYS",))
