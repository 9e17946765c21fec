"""The door to machine code: a cubin as instructions, its contracts, and a patched stall count.

instructions = decode(image, kernel, arch)      nvdisasm and the control bits of each 128-bit word
require(contract, instructions, resources)      ContractError where something else stands in the timed region
patch_stall(image, kernel, index, stall)        the same cubin with one instruction issued earlier or later
"""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, islice

from microbench.errors import BuildError, EnvironmentLacks, InputError
from microbench.machine import tools
from microbench.machine.arch import Arch
from microbench.sass import cubin, instruction
from microbench.sass.contracts import check, require, stalls
from microbench.sass.instruction import STALL_BIT, STALL_MAX, Instruction
from microbench.sass.match import is_op, matches
from microbench.sass.regions import timed_region

__all__ = ["check", "is_op", "matches", "require", "stalls", "timed_region"]

# nvdisasm 13 dropped SM70; Turing decodes the same encoding, and prints the same text.
_DECODED_AS = {"SM70": "SM75"}
_REMEDY = tools.install((tools.NVDISASM,))

_BASE = 0x7ACE_0000_0000  # beyond 32 bits, and 4 GiB away from any other number that begins alike
_ADDRESS = re.compile(r"(?P<mark>0x|/\*)(?P<address>7ace[0-9a-f]{8})\b")


def decode(image: bytes, kernel: str, arch: Arch) -> tuple[Instruction, ...]:
    """Every instruction of `kernel` in order of address. Raises EnvironmentLacks without nvdisasm, BuildError."""
    return parse(image, kernel, disassemble(image, kernel, arch))


def disassemble(image: bytes, kernel: str, arch: Arch) -> str:
    """The listing of `kernel` by nvdisasm, one instruction a line. Raises EnvironmentLacks, BuildError."""
    return disassemble_all((cubin.text(image, kernel).code,), arch)[0]


def disassemble_all(codes: Sequence[bytes], arch: Arch) -> tuple[str, ...]:
    """One listing for each piece of code, by one nvdisasm: it takes 0.14 s to start, and 1 ms for a small kernel.

    The pieces stand one behind the other at an address that no immediate reaches, so every number above it is the
    address of an instruction, and moves back to where its own kernel starts at 0. Raises EnvironmentLacks.
    """
    if not codes:
        return ()
    target = arch.name.upper().replace("A", "a")
    with tempfile.NamedTemporaryFile(prefix="smscope-", suffix=".bin") as raw:
        raw.write(b"".join(codes))
        raw.flush()
        place = ["--base-address", hex(_BASE), "-b", _DECODED_AS.get(target, target)]
        ran = subprocess.run([_nvdisasm(), "-ndf", *place, raw.name], capture_output=True, text=True, check=False)
    if ran.returncode:
        reason = next(iter(ran.stderr.strip().splitlines()), f"exit {ran.returncode}")
        raise EnvironmentLacks(f"nvdisasm cannot decode {arch.name} ({reason}); get a newer one: {_REMEDY}.")
    lines = iter([line for line in map(str.strip, ran.stdout.splitlines()) if line.startswith("/*")])
    starts = accumulate((len(code) for code in codes), initial=_BASE)
    return tuple(
        "".join(_moved(line, start) + "\n" for line in islice(lines, len(code) // 16))
        for code, start in zip(codes, starts, strict=False)
    )


def _moved(line: str, start: int) -> str:
    """A line of the listing with every address counted from `start`: its own, and those it jumps to."""

    def counted(found: re.Match[str]) -> str:
        address = int(found["address"], 16) - start
        return f"{found['mark']}{address:x}" if found["mark"] == "0x" else f"{found['mark']}{address:04x}"

    return _ADDRESS.sub(counted, line)


def parse(image: bytes, kernel: str, listing: str) -> tuple[Instruction, ...]:
    """Instructions from a cubin and the listing once made of it; needs no nvdisasm. Raises BuildError."""
    try:
        return instruction.parse(listing, cubin.text(image, kernel).code)
    except ValueError as error:
        raise BuildError(f"The listing of {kernel} does not fit its cubin ({error}); empty the cubin cache.") from error


def patch_stall(image: bytes, kernel: str, index: int, stall: int) -> bytes:
    """A copy of `image` whose instruction number `index` stalls `stall` cycles (0 to 15); a cubin has no checksum.

    Raises InputError where index or stall do not exist.
    """
    text = cubin.text(image, kernel)
    count = len(text.code) // 16
    if not 0 <= index < count:
        raise InputError(f"{kernel} has instructions 0 to {count - 1}, not {index}.")
    if not 0 <= stall <= STALL_MAX:
        raise InputError(f"A stall count is 0 to {STALL_MAX} cycles, not {stall}.")
    start = text.offset + 16 * index
    word = int.from_bytes(image[start : start + 16], "little")
    word = word & ~(STALL_MAX << STALL_BIT) | stall << STALL_BIT
    return image[:start] + word.to_bytes(16, "little") + image[start + 16 :]


@lru_cache
def _nvdisasm() -> str:
    found = tools.nvdisasm()
    if found is None:
        raise EnvironmentLacks(f"nvdisasm is not on this machine, so no SASS can be checked: {_REMEDY} (5 MB).")
    return found
