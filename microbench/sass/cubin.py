"""What a cubin says about its kernels: where the code lies and, with ptxas' own log, what it occupies.

Resources come from the log of `ptxas -v`, which counts alike for every architecture. The ELF does not: from sm_90 on
its shared memory includes a reserved KiB, and from sm_100 on the section flags no longer count barriers.
"""

import io
import re
from dataclasses import dataclass

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from microbench.errors import BuildError

_TEXT = ".text."


@dataclass(frozen=True)
class Resources:
    """What one thread or block of a kernel occupies; bytes where the name says so."""

    registers: int  # per thread
    smem_bytes: int  # static, per block
    local_bytes: int  # stack frame, per thread
    spill_store_bytes: int
    spill_load_bytes: int
    barriers: int  # named barriers, per block
    code_bytes: int

    @property
    def spills(self) -> bool:
        return self.spill_store_bytes + self.spill_load_bytes > 0

    def spills_beyond(self, allowed_bytes: int) -> bool:
        """Whether a thread stores more than so many bytes; where none is allowed, whether it spills at all."""
        return self.spill_store_bytes > allowed_bytes if allowed_bytes else self.spills


@dataclass(frozen=True)
class Text:
    """The machine code of one kernel: where it stands in the cubin, and the bytes."""

    offset: int
    code: bytes


def kernels(image: bytes) -> tuple[str, ...]:
    """Names of the kernels in a cubin. Raises BuildError where it is none."""
    return tuple(s.name[len(_TEXT) :] for s in _open(image).iter_sections() if s.name.startswith(_TEXT))


def text(image: bytes, kernel: str) -> Text:
    """The code of `kernel`. Raises BuildError with the names there are."""
    section = _open(image).get_section_by_name(_TEXT + kernel)
    if section is None:
        found = ", ".join(kernels(image)) or "none"
        raise BuildError(f'The cubin holds no kernel {kernel!r} (it has: {found}); declare it extern "C" __global__.')
    return Text(section["sh_offset"], section.data())


def routines(image: bytes) -> tuple[str, ...]:
    """Subroutines of ptxas in a cubin: __cuda_sm_8x_mma_row_col_f32_f16_f16_f32. Raises BuildError."""
    symbols = _open(image).get_section_by_name(".symtab")
    names = [symbol.name for symbol in symbols.iter_symbols()] if isinstance(symbols, SymbolTableSection) else []
    return tuple(sorted(name[name.index("__cuda_") :] for name in names if "$__cuda_" in name))


def resources(image: bytes, kernel: str, log: str) -> Resources:
    """What `kernel` occupies, by the log of the ptxas -v that made `image`. Raises BuildError where it is not in it."""
    code_bytes = len(text(image, kernel).code)
    properties, _, rest = log.partition(f"Function properties for {kernel}\n")[2].partition("\n")
    used = rest.partition("\n")[0]
    if "spill stores" not in properties or "registers" not in used:
        raise BuildError(f"The log does not say what {kernel} occupies; compile it with --ptxas-options=-v, uncached.")
    return Resources(
        registers=_number(r"Used (\d+) registers", used),
        smem_bytes=_number(r"(\d+) bytes smem", used),
        local_bytes=_number(r"(\d+) bytes stack frame", properties),
        spill_store_bytes=_number(r"(\d+) bytes spill stores", properties),
        spill_load_bytes=_number(r"(\d+) bytes spill loads", properties),
        barriers=_number(r"used (\d+) barriers", used),
        code_bytes=code_bytes,
    )


def _number(pattern: str, line: str) -> int:
    """The number in `line`, 0 where ptxas leaves the word out because there is none."""
    found = re.search(pattern, line)
    return int(found[1]) if found else 0


def _open(image: bytes) -> ELFFile:
    try:
        return ELFFile(io.BytesIO(image))
    except ELFError as error:
        raise BuildError(f"These {len(image)} bytes are no cubin ({error}); empty the cubin cache.") from error
