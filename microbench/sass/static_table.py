"""ptxas' own stalls between dependent instructions, as data/verification/static_latency.csv keeps them."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from microbench import paths
from microbench.probe import SassContract
from microbench.sass.instruction import Instruction
from microbench.sass.match import name
from microbench.sass.regions import at, declared

FILE = "verification/static_latency.csv"


@cache
def fixed_latencies(arch: str) -> Mapping[str, frozenset[int]]:
    """By opcode the stalls that ptxas leaves behind an instruction without a scoreboard; none where no table lies."""
    if not (paths.SHIPPED / FILE).is_file():  # SMSCOPE_DATA names a folder of the reader's own
        return {}
    with (paths.SHIPPED / FILE).open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["arch"] == arch and row["scoreboard"] == "no"]
    return {row["opcode"]: frozenset(map(int, row["cycles"].split())) for row in rows}


def wrong_stalls(contract: SassContract, region: Sequence[Instruction], arch: str) -> Iterator[str]:
    """In a chain of dependent operations each stalls as long as its latency is, or the clock measures the schedule."""
    if contract.distance != 1:
        return
    ops = [instruction for instruction in region if declared(contract, instruction)]
    for instruction in ops[:-1]:  # behind the last one stands the compare of settle
        known = fixed_latencies(arch).get(name(instruction))
        if known is not None and instruction.control.stall not in known:
            table = " or ".join(map(str, sorted(known)))
            yield f"{at(instruction)} stalls {instruction.control.stall} cycles where ptxas leaves {table}"
            return
