"""Does the SASS between the clock reads hold what a probe says it timed: no more, no less, in that dependence?"""

from collections import Counter
from collections.abc import Iterator, Sequence

from microbench.errors import ContractError
from microbench.machine.arch import Arch
from microbench.probe import SassContract
from microbench.sass.clocks import waits_from_outside, wrong_clocks
from microbench.sass.cubin import Resources
from microbench.sass.dependence import continued, wrong_distances
from microbench.sass.instruction import Instruction
from microbench.sass.match import is_op, matches, name
from microbench.sass.regions import at, declared, second_branches, strays, timed_region, unanswered
from microbench.sass.static_table import wrong_stalls

Instructions = Sequence[Instruction]

# What one elected thread issues for its block stands under a predicate by right: bulk copies, tcgen05, mbarriers.
_ELECTED = ("UTMA", "UBLK", "UTC", "SYNCS")
_SHOWN = 12


def require(
    contract: SassContract, instructions: Instructions, arch: Arch, resources: Resources, what: str = "The kernel"
) -> None:
    """Raise ContractError, with declared and found opcodes side by side, where `check` finds a violation."""
    violations = check(contract, instructions, arch, resources)
    if not violations:
        return
    region = tuple(i for each in contract.each for i in _region(each, instructions))
    found = Counter(map(name, region))
    lines = [
        f"{what} on {arch.name} does not time what it declares; change the kernel or its contract:",
        *(f"  {violation}" for violation in violations),
        f"  declared: {_tally({op.opcode: op.count for each in contract.each for op in each.ops})}",
        f"  found:    {_tally(found)}",
        *(f"    {instruction.address:04x}  {instruction.text}" for instruction in region[:_SHOWN]),
    ]
    raise ContractError("\n".join(lines))


def check(contract: SassContract, instructions: Instructions, arch: Arch, resources: Resources) -> tuple[str, ...]:
    """Every way in which a kernel breaks its contract, one sentence each; empty where it keeps it."""
    found = (one for each in contract.each for one in _violations(each, instructions, arch, resources))
    return tuple(dict.fromkeys(found))


def stalls(contract: SassContract, instructions: Instructions) -> tuple[tuple[int, int], ...]:
    """(instruction number, stall) of every operation of a chain that another one of it reads.

    The last one is left out: its result goes to a compare and a store, whose needs are other ones.
    """
    (op,) = contract.ops
    region = timed_region(contract, instructions)
    return tuple((i.address // 16, i.control.stall) for i in region if is_op(i, op))[:-1]


def _region(contract: SassContract, instructions: Instructions) -> Instructions:
    try:
        return timed_region(contract, instructions)
    except ContractError:
        return ()


def _violations(contract: SassContract, instructions: Instructions, arch: Arch, resources: Resources) -> Iterator[str]:
    if resources.spills:
        yield (
            f"ptxas spilled {resources.spill_store_bytes} bytes a thread on {arch.name} (it has {resources.registers} "
            "registers); local memory would be timed too"
        )
    for instruction in instructions:
        if instruction.head in ("LDL", "STL"):
            yield f"{at(instruction)} goes to local memory"
            break
    yield from wrong_clocks(contract, instructions)
    try:
        region = timed_region(contract, instructions)
    except ContractError as error:
        yield str(error)
        return
    yield from _miscounts(contract, region)
    yield from _disorder(contract, region)
    yield from wrong_distances(contract, region)
    if contract.region == "straight":
        yield from wrong_stalls(contract, region, arch.name)
        yield from waits_from_outside(instructions, region)
    if contract.region == "loop":
        yield from second_branches(contract, instructions)
        yield from strays(contract, instructions, region)
        yield from unanswered(contract, instructions)
    yield from continued(contract, instructions, region)


def _miscounts(contract: SassContract, region: Instructions) -> Iterator[str]:
    ops = [declared(contract, instruction) for instruction in region]
    for op in contract.ops:
        count = sum(found is op for found in ops)
        if count != op.count:
            yield f"{count} {op.opcode} where {op.count} are declared"
    for instruction, found in zip(region, ops, strict=True):
        if found is not None and instruction.predicate and not instruction.head.startswith(_ELECTED):
            yield f"{at(instruction)} stands under a predicate, so it may not run"
            break
    left = [instruction for instruction, found in zip(region, ops, strict=True) if found is None]
    for overhead in contract.overhead:
        mine = [i for i in left if any(matches(i, opcode) for opcode in overhead.opcodes)]
        left = [i for i in left if i not in mine]
        if not overhead.least <= len(mine) <= overhead.most:
            few = f"{overhead.least} to " if overhead.least < overhead.most else ""
            what = _tally(Counter(map(name, mine))) if mine else " or ".join(overhead.opcodes)
            yield f"{len(mine)} instructions of overhead ({what}) where {few}{overhead.most} are declared"
    if left:
        yield f"{_tally(Counter(map(name, left)))} not declared"


def _disorder(contract: SassContract, region: Instructions) -> Iterator[str]:
    places: dict[str, list[int]] = {}
    for place, instruction in enumerate(region):
        if op := declared(contract, instruction):
            places.setdefault(op.opcode, []).append(place)
    for first, then in contract.before:
        if first in places and then in places and max(places[first]) > min(places[then]):
            yield f"{at(region[max(places[first])])} stands behind a {then}, before which every {first} is declared"


def _tally(counts: dict[str, int] | Counter[str]) -> str:
    return ", ".join(f"{count} {opcode}" for opcode, count in sorted(counts.items())) or "nothing"
