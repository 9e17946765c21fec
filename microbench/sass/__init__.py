"""The door to machine code: a cubin as instructions, its contracts, and a patched stall count.

instructions = decode(image, kernel, arch)      nvdisasm and the control bits of each 128-bit word
require(contract, instructions, resources)      ContractError where something else stands in the timed region
patch_stall(image, kernel, index, stall)        the same cubin with one instruction issued earlier or later
"""

import os
import shutil
import subprocess
import tempfile
from functools import lru_cache

from microbench import toolkit
from microbench.arch import Arch
from microbench.errors import BuildError, EnvironmentLacks, InputError
from microbench.sass import cubin, instruction
from microbench.sass.contracts import check, matches, require, timed_region
from microbench.sass.instruction import STALL_BIT, STALL_MAX, Control, Instruction

__all__ = [
    "Control",
    "Instruction",
    "check",
    "decode",
    "disassemble",
    "matches",
    "parse",
    "patch_stall",
    "require",
    "timed_region",
]

# nvdisasm 13 dropped SM70; Turing decodes the same encoding, and prints the same text.
_DECODED_AS = {"SM70": "SM75"}
_REMEDY = "pip install nvidia-cuda-nvdisasm"


def decode(image: bytes, kernel: str, arch: Arch) -> tuple[Instruction, ...]:
    """Every instruction of `kernel` in order of address. Raises EnvironmentLacks without nvdisasm, BuildError."""
    return parse(image, kernel, disassemble(image, kernel, arch))


def disassemble(image: bytes, kernel: str, arch: Arch) -> str:
    """The listing of `kernel` by nvdisasm, one instruction a line. Raises EnvironmentLacks, BuildError."""
    target = arch.name.upper().replace("A", "a")
    with tempfile.NamedTemporaryFile(prefix="smscope-", suffix=".bin") as raw:
        raw.write(cubin.text(image, kernel).code)
        raw.flush()
        command = [_nvdisasm(), "-ndf", "-b", _DECODED_AS.get(target, target), raw.name]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        reason = next(iter(ran.stderr.strip().splitlines()), f"exit {ran.returncode}")
        raise EnvironmentLacks(
            f"nvdisasm cannot decode {kernel} for {arch.name} ({reason}); get a newer one: {_REMEDY}."
        )
    return "".join(line + "\n" for line in map(str.strip, ran.stdout.splitlines()) if line.startswith("/*"))


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
    wheels = ("nvidia-cuda-nvdisasm", "nvidia-cuda-nvdisasm-cu12")
    for file, _ in toolkit.wheel_files(wheels, "nvdisasm"):
        return str(file)
    folders = [str(root / "bin") for root in toolkit.roots()]
    found = shutil.which("nvdisasm") or shutil.which("nvdisasm", path=os.pathsep.join(folders))
    if found is None:
        raise EnvironmentLacks(f"nvdisasm is not on this machine, so no SASS can be checked: {_REMEDY} (5 MB).")
    return found
