"""What a compiled kernel must keep: by the region that it times, or by what the whole of it holds and occupies."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from microbench import sass
from microbench.compile import Cubin
from microbench.errors import ContractError
from microbench.machine import arch as archs
from microbench.probe import Budget, Build
from microbench.sass import cubin as images
from microbench.sass.overtaken import overtaken


class Rules(Protocol):
    """Rules of one kernel: frozen data, which travels to the process that compiles it."""

    @property
    def launch_smem_bytes(self) -> int:
        """Dynamic shared memory of a block, where the kernel says how much it takes."""

    def broken(self, cubin: Cubin) -> tuple[str, ...]:
        """Every way in which the cubin is not what its source declares, one sentence each."""

    def signature(self, cubin: Cubin) -> tuple[str, ...]:
        """The instructions that it was compiled for, as the disassembler spells them on this architecture."""


@dataclass(frozen=True)
class Timed:
    """A probe's build: the contract on its timed region, its budget, no tensor instruction by software.

    A contract speaks of native instructions, so it is not asked of Volta's code on a newer target, where the build
    wants ptxas' routine; spills and the budget still are.
    """

    build: Build
    launch_smem_bytes: int = 0

    def broken(self, cubin: Cubin) -> tuple[str, ...]:
        """Contract, budget, and tensor instructions by software."""
        arch, build = archs.by_name(cubin.arch), self.build
        software = _software(cubin)
        if software and build.software_mma:
            found = list(_spills(cubin))
        else:
            found = list(sass.check(build.contract, cubin.instructions(), arch, cubin.resources))
        found += _excess(cubin, build.budget)
        return tuple(found if build.software_mma else (*found, *software))

    def signature(self, cubin: Cubin) -> tuple[str, ...]:
        """The contract's operations, in the timed region."""
        found: set[str] = set()
        for contract in self.build.contract.each:
            try:
                region = sass.timed_region(contract, cubin.instructions())
            except ContractError:
                return ()
            found |= {i.opcode for i in region if any(sass.is_op(i, op) for op in contract.ops)}
        return tuple(sorted(found))


@dataclass(frozen=True)
class Whole:
    """A kernel that is timed from outside: the opcodes that it holds, and what a block of it occupies.

    `spilled_bytes`: what a thread may store in local memory.
    """

    holds: tuple[str, ...]
    budget: Budget
    launch_smem_bytes: int = 0
    spilled_bytes: int = 0

    def broken(self, cubin: Cubin) -> tuple[str, ...]:
        """More spilled than may be, a missing instruction, too large a block, an arrival that overtakes a load."""
        found = cubin.instructions()
        missing = [f"holds no {opcode}" for opcode in self.holds if not any(sass.matches(i, opcode) for i in found)]
        local = tuple(_spills(cubin, self.spilled_bytes))
        if not (local or cubin.resources.spills):
            local = tuple(f"{i.text} goes to local memory" for i in found if i.head in ("LDL", "STL"))[:1]
        excess = _excess(cubin, self.budget, self.launch_smem_bytes)
        early = [f"{arrival.text} does not wait for {load.text}" for load, arrival in overtaken(found)][:1]
        return (*local, *missing, *excess, *early, *_software(cubin))

    def signature(self, cubin: Cubin) -> tuple[str, ...]:
        """Those opcodes, without their modifiers: a kernel has each in many forms."""
        found = cubin.instructions()
        return tuple(opcode for opcode in self.holds if any(sass.matches(i, opcode) for i in found))


def _spills(cubin: Cubin, allowed_bytes: int = 0) -> Iterator[str]:
    used = cubin.resources
    if used.spills_beyond(allowed_bytes):
        yield f"ptxas spilled {used.spill_store_bytes} bytes a thread on {cubin.arch} (of {used.registers} registers)"


def _excess(cubin: Cubin, budget: Budget, launch_smem_bytes: int = 0) -> Iterator[str]:
    memory = "shared memory" if launch_smem_bytes else "static shared memory"
    for have, most, what in (
        (cubin.resources.registers, budget.registers, "registers a thread"),
        (cubin.resources.smem_bytes + launch_smem_bytes, budget.smem_bytes, f"bytes of {memory}"),
    ):
        if most is not None and have > most:
            yield f"{have} {what} on {cubin.arch}, over the budget of {most}"


def _software(cubin: Cubin) -> list[str]:
    routines = [routine for routine in images.routines(cubin.image) if "mma" in routine]
    return [f"{cubin.arch} has no such tensor instruction: ptxas calls {', '.join(routines)}"] if routines else []
