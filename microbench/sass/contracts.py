"""Does the SASS between the clock reads hold what a probe says it timed: no more, no less, in that dependence?"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from microbench.errors import ContractError
from microbench.machine.arch import Arch
from microbench.probe import OpCount, SassContract
from microbench.sass.cubin import Resources
from microbench.sass.instruction import Instruction
from microbench.sass.loops import Loop, loops

Instructions = Sequence[Instruction]

_CONTROL_FLOW = ("BRA", "BRX", "JMP", "CALL", "RET", "EXIT", "BSSY", "BSYNC", "BREAK", "KILL", "WARPSYNC")
# IMAD's forms are instructions of their own: a contract that says IMAD does not mean a register move by IMAD.MOV.
_FORMS = {"IMAD": frozenset({"MOV", "SHL", "IADD", "X", "WIDE", "HI"})}
# What one elected thread issues for its block stands under a predicate by right: bulk copies, tcgen05, mbarriers.
_ELECTED = ("UTMA", "UBLK", "UTC", "SYNCS")
# CS2R samples when it issues and raises no scoreboard; so does CS2UR, its uniform twin, which ptxas mixes in on sm_120.
_FIXED_LATENCY_CLOCKS = ("CS2R", "CS2UR")
_SHOWN = 12


def require(
    contract: SassContract, instructions: Instructions, arch: Arch, resources: Resources, what: str = "The kernel"
) -> None:
    """Raise ContractError, with declared and found opcodes side by side, where `check` finds a violation."""
    violations = check(contract, instructions, arch, resources)
    if not violations:
        return
    try:
        region = timed_region(contract, instructions)
    except ContractError:
        region = ()
    found = Counter(map(_name, region))
    lines = [
        f"{what} on {arch.name} does not time what it declares; change the kernel or its contract:",
        *(f"  {violation}" for violation in violations),
        f"  declared: {_tally({op.opcode: op.count for op in contract.ops})}",
        f"  found:    {_tally(found)}",
        *(f"    {instruction.address:04x}  {instruction.text}" for instruction in region[:_SHOWN]),
    ]
    raise ContractError("\n".join(lines))


def check(contract: SassContract, instructions: Instructions, arch: Arch, resources: Resources) -> tuple[str, ...]:
    """Every way in which a kernel breaks its contract, one sentence each; empty where it keeps it."""
    return tuple(_violations(contract, instructions, arch, resources))


def _violations(contract: SassContract, instructions: Instructions, arch: Arch, resources: Resources) -> Iterator[str]:
    if resources.spills:
        yield (
            f"ptxas spilled {resources.spill_store_bytes} bytes a thread on {arch.name} (it has {resources.registers} "
            "registers); local memory would be timed too"
        )
    for instruction in instructions:
        if instruction.head in ("LDL", "STL"):
            yield f"{_at(instruction)} goes to local memory"
            break
    for instruction in instructions:
        if instruction.reads_clock and instruction.head not in _FIXED_LATENCY_CLOCKS:
            yield f"{_at(instruction)} reads the clock by a slow path; use clock64, which becomes CS2R at both ends"
            break
    try:
        region = timed_region(contract, instructions)
    except ContractError as error:
        yield str(error)
        return
    yield from _miscounts(contract, region)
    yield from _wrong_distances(contract, region)
    if contract.region == "straight":
        yield from _waits_from_outside(instructions, region)
    if contract.region == "loop":
        yield from _strays(contract, instructions, region)


def timed_region(contract: SassContract, instructions: Instructions) -> tuple[Instruction, ...]:
    """The instructions that are timed, by the contract's `region`. Raises ContractError where there is no such region.

    straight    strictly between the two clock reads
    loop        the body of the one loop that holds the declared ops, without its closing branch
    kernel      all of it, without the last EXIT and the padding behind: for kernels that are timed from outside
    """
    if contract.region == "straight":
        return _between_clocks(instructions)
    if contract.region == "loop":
        loop = _the_loop(contract, instructions)
        return tuple(instruction for instruction in loop.body if instruction is not loop.closing)
    if contract.region == "kernel":
        last = max((at for at, i in enumerate(instructions) if i.head == "EXIT"), default=len(instructions))
        outlined = [i for i in instructions[last + 1 :] if i.head != "NOP" and i.target != i.address]
        return (*instructions[:last], *outlined)
    raise ContractError(f"A contract's region is 'straight', 'loop' or 'kernel', not {contract.region!r}")


def stalls(contract: SassContract, instructions: Instructions) -> tuple[tuple[int, int], ...]:
    """(instruction number, stall) of every operation of a chain that another one of it reads.

    The last one is left out: its result goes to a compare and a store, whose needs are other ones.
    """
    (op,) = contract.ops
    region = timed_region(contract, instructions)
    return tuple((i.address // 16, i.control.stall) for i in region if matches(i, op.opcode))[:-1]


def matches(instruction: Instruction, opcode: str) -> bool:
    """LDG.64 matches LDG.E.64.SYS: the same head, all parts present, and no form of IMAD that was not asked for.

    Under @!PT everything is a NOP: ptxas pads Volta's loops with such a SHFL, and LDGSTS with such LDS.
    """
    head, *parts = opcode.split(".")
    if instruction.predicate == "!PT":
        return opcode == "NOP"
    forms = _FORMS.get(head, frozenset()) & set(instruction.modifiers)
    return instruction.head == head and set(parts) <= set(instruction.modifiers) and forms <= set(parts)


def _declared(contract: SassContract, instruction: Instruction) -> OpCount | None:
    """The declared op that this instruction is, the most specific one where several match."""
    fitting = [op for op in contract.ops if matches(instruction, op.opcode)]
    return max(fitting, key=lambda op: op.opcode.count("."), default=None)


def _between_clocks(instructions: Instructions) -> tuple[Instruction, ...]:
    clocks = [at for at, instruction in enumerate(instructions) if instruction.reads_clock]
    if len(clocks) != 2:
        raise ContractError(f"a straight region lies between two clock reads; this kernel has {len(clocks)}")
    first, second = clocks
    region = tuple(instructions[first + 1 : second])
    for instruction in region:
        if instruction.head in _CONTROL_FLOW:
            raise ContractError(f"{_at(instruction)} leaves the straight line between the clock reads")
    inside = range(instructions[first].address + 16, instructions[second].address + 1)
    for instruction in instructions:
        if instruction.target in inside:
            raise ContractError(f"{_at(instruction)} jumps between the clock reads")
    return region


def _the_loop(contract: SassContract, instructions: Instructions) -> Loop:
    names = ", ".join(op.opcode for op in contract.ops) or "nothing"
    holding = [loop for loop in loops(instructions) if any(_declared(contract, i) for i in loop.body)]
    clocks = [i.address for i in instructions if i.reads_clock]
    if len(clocks) == 2:  # a loop that warms the caches before the first reading is not timed
        holding = [loop for loop in holding if clocks[0] < loop.end and loop.start < clocks[1]]
    inner = [a for a in holding if not any(b is not a and set(b.body) < set(a.body) for b in holding)]
    if not inner:
        raise ContractError(
            f"no loop {'between the clock reads ' if clocks else ''}holds {names}: ptxas unrolled, moved or removed "
            "it; give it a run-time trip count"
        )
    if len(inner) > 1:
        where = " and ".join(f"{loop.start:04x}-{loop.end:04x}" for loop in inner)
        raise ContractError(f"{len(inner)} loops hold {names} (at {where}): ptxas split or copied the timed loop")
    return inner[0]


def _miscounts(contract: SassContract, region: Instructions) -> Iterator[str]:
    declared = [_declared(contract, instruction) for instruction in region]
    for op in contract.ops:
        count = sum(found is op for found in declared)
        if count != op.count:
            yield f"{count} {op.opcode} where {op.count} are declared"
    for instruction, found in zip(region, declared, strict=True):
        if found is not None and instruction.predicate and not instruction.head.startswith(_ELECTED):
            yield f"{_at(instruction)} stands under a predicate, so it may not run"
            break
    others = [i for i, found in zip(region, declared, strict=True) if found is None]
    allowed = [i for i in others if any(matches(i, opcode) for opcode in contract.overhead)]
    strangers = Counter(_name(i) for i in others if i not in allowed)
    if strangers:
        yield f"{_tally(strangers)} not declared"
    if len(allowed) > contract.overhead_max:
        yield (
            f"{len(allowed)} instructions of overhead ({_tally(Counter(map(_name, allowed)))}), "
            f"at most {contract.overhead_max} declared"
        )


def _wrong_distances(contract: SassContract, region: Instructions) -> Iterator[str]:
    """The nearest op whose result an op reads stands `distance` places before it, in a loop across the back edge."""
    if contract.distance:
        yield from islice(_each_wrong_distance(contract, region), 3)


def _each_wrong_distance(contract: SassContract, region: Instructions) -> Iterator[str]:
    laps = 2 if contract.region == "loop" else 1
    writer: dict[str, int | None] = {}
    place = 0
    unchecked = sum(_declared(contract, i) is not None for i in region) if laps == 2 else contract.distance
    for instruction in tuple(region) * laps:
        is_op = _declared(contract, instruction) is not None
        if is_op and place >= unchecked:
            sources = [at for name in instruction.reads if (at := writer.get(name)) is not None]
            if not sources:
                yield f"{_at(instruction)} reads no result of the op {contract.distance} before it"
            elif place - max(sources) != contract.distance:
                yield f"{_at(instruction)} reads the op {place - max(sources)} before it, not {contract.distance}"
        writer.update(dict.fromkeys(instruction.writes, place if is_op else None))
        place += is_op


def _waits_from_outside(instructions: Instructions, region: Instructions) -> Iterator[str]:
    """A wait for what was issued before the first clock read would be timed, unless ptx::settle has waited before.

    The first clock read itself may wait: CS2R samples the counter when it issues, after the wait.
    """
    first = next(at for at, instruction in enumerate(instructions) if instruction.reads_clock)
    pending: set[int] = set()
    for instruction in instructions[: first + 1]:
        pending = pending - instruction.waits | instruction.control.sets
    inside: set[int] = set()
    for instruction in instructions[first + 1 : first + 2 + len(region)]:
        foreign = {s for s in instruction.waits if s in pending or s not in inside}
        if foreign:
            boards = ", ".join(map(str, sorted(foreign)))
            yield f"{_at(instruction)} waits for scoreboard {boards}, set before the clock read; settle its operands"
            return
        inside |= instruction.control.sets


def _strays(contract: SassContract, instructions: Instructions, region: Instructions) -> Iterator[str]:
    """Declared ops beside the timed loop: in a loop around it, or between the clock reads but peeled off."""
    inside = set(region)
    around = {i for loop in loops(instructions) if inside < set(loop.body) for i in loop.body}
    clocks = [instruction.address for instruction in instructions if instruction.reads_clock]
    start, end = min(i.address for i in inside), max(i.address for i in inside)
    if clocks and not any(start < clock < end for clock in clocks) and not clocks[0] < start < end < clocks[-1]:
        yield f"the timed loop at {start:04x} does not stand between the clock reads"
    for instruction in instructions:
        timed = instruction in around or (bool(clocks) and clocks[0] < instruction.address < clocks[-1])
        if timed and instruction not in inside and _declared(contract, instruction):
            yield f"{_at(instruction)} stands beside the timed loop: ptxas peeled or unrolled part of it"
            return


def _at(instruction: Instruction) -> str:
    return f"{instruction.address:04x} {instruction.text}"


def _name(instruction: Instruction) -> str:
    return f"@!PT {instruction.opcode}" if instruction.predicate == "!PT" else instruction.opcode


def _tally(counts: dict[str, int] | Counter[str]) -> str:
    return ", ".join(f"{count} {opcode}" for opcode, count in sorted(counts.items())) or "nothing"
