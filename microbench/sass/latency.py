"""ptxas' own latency model: the cycles it leaves between an instruction and the one that reads its result.

An instruction of fixed latency raises no scoreboard: nothing but the stall counts keeps its reader from a stale
register, so their sum is the latency that NVIDIA's scheduler believes in.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from microbench.sass.instruction import Instruction


@dataclass(frozen=True, order=True)
class Wait:
    """What keeps a reader from its operand: stall counts alone, or a scoreboard after at least as many cycles."""

    cycles: int
    scoreboard: bool


def static_latencies(chain: Sequence[Instruction]) -> tuple[Wait, ...]:
    """The distinct waits between each instruction of a chain and the next one that reads its result, in order.

    `chain` is a straight line without branches; instructions whose result nobody in it reads do not count.
    """
    return tuple(sorted(set(_waits(chain))))


def _waits(chain: Sequence[Instruction]) -> Iterator[Wait]:
    for at, writer in enumerate(chain):
        cycles = writer.control.stall
        for reader in islice(chain, at + 1, None):
            if reader.reads & writer.writes:
                yield Wait(cycles, writer.control.write_barrier is not None)
                break
            if writer.writes <= reader.writes:
                break
            cycles += reader.control.stall
