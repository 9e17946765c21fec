"""Executes the SASS of one warp, 32 lanes at a time: the few opcodes of NVIDIA's own routine for m8n8k4 on sm_90a.

Straight code with a call: no divergence. Registers are 32-bit words, memory is words by address.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from microbench.sass.instruction import Instruction

LANES = 32
Words = NDArray[np.uint32]
Floats = NDArray[np.float32]

_REGISTER = re.compile(r"(?P<minus>-)?(?P<name>R\d+|U?RZ)(?:\.(?P<half>H[01])_(?P=half))?")
_ADDRESS = re.compile(r"desc\[UR\d+\]\[R(\d+)\.64(?:\+(0x[0-9a-f]+))?\]")
_CONSTANT = re.compile(r"c\[0x0\]\[(0x[0-9a-f]+)\]")


class Warp:
    """One warp, its registers, predicates and memory. `constants` maps offsets of the constant bank to words."""

    def __init__(self, constants: dict[int, int], memory: dict[int, int]) -> None:
        self.registers = np.zeros((256, LANES), np.uint32)
        self.predicates = {"PT": np.ones(LANES, bool)}
        self.constants = constants
        self.memory = memory

    def run(self, instructions: Sequence[Instruction]) -> None:
        """Until EXIT. Raises NotImplementedError at an opcode that it does not know."""
        at = {instruction.address: index for index, instruction in enumerate(instructions)}
        index = 0
        while instructions[index].head != "EXIT":
            instruction = instructions[index]
            index += 1
            if instruction.head == "CALL":
                index = at[int(instruction.operands[0], 16)]
            elif instruction.head == "RET":
                index = at[int(self.word(instruction.operands[0].split()[0])[0])]
            elif instruction.head not in ("NOP", "ULDC", "S2UR", "BRA"):
                self.step(instruction)

    def word(self, operand: str) -> Words:
        """An operand as unsigned words."""
        operand = operand.replace(".reuse", "")
        if operand.startswith("UR"):  # beside descriptors, the number of the block: there is one
            return np.zeros(LANES, np.uint32)
        if constant := _CONSTANT.fullmatch(operand):
            return np.full(LANES, self.constants[int(constant[1], 16)], np.uint32)
        if found := _REGISTER.fullmatch(operand):
            value = np.zeros(LANES, np.uint32) if "Z" in found["name"] else self.registers[int(found["name"][1:])]
            return -value if found["minus"] else value.copy()
        return np.full(LANES, int(operand, 0) & 0xFFFFFFFF, np.uint32)

    def number(self, operand: str) -> Floats:
        """An operand as f32; a half of a register is an f16."""
        found = _REGISTER.fullmatch(operand.replace(".reuse", ""))
        assert found, operand
        words = self.word(found["name"])
        if found["half"]:
            value = (words >> (16 * int(found["half"][1]))).astype(np.uint16).view(np.float16).astype(np.float32)
        else:
            value = words.view(np.float32)
        return -value if found["minus"] else value

    def write(self, operand: str, words: Words) -> None:
        if operand != "RZ":
            self.registers[int(operand[1:])] = words

    def wide(self, register: int) -> NDArray[np.uint64]:
        low, high = self.registers[register].astype(np.uint64), self.registers[register + 1].astype(np.uint64)
        return low | high << np.uint64(32)

    def addresses(self, operand: str) -> list[int]:
        found = _ADDRESS.fullmatch(operand)
        assert found, operand
        return [int(address) + int(found[2] or "0", 16) for address in self.wide(int(found[1]))]

    def step(self, instruction: Instruction) -> None:
        o, head, modifiers = instruction.operands, instruction.head, instruction.modifiers
        if head == "LDC":
            offset = int(_CONSTANT.fullmatch(o[1].replace("RZ", "0x0"))[1], 16)  # type: ignore[index]
            for word in range(2 if "64" in modifiers else 1):
                self.registers[int(o[0][1:]) + word] = self.constants.get(offset + 4 * word, 0)
        elif head == "S2R":
            self.write(o[0], np.arange(LANES, dtype=np.uint32))  # the thread's number and the lane's are the same
        elif head == "LDG":
            self.write(o[0], np.array([self.memory[address] for address in self.addresses(o[1])], np.uint32))
        elif head == "STG":
            self.memory.update(zip(self.addresses(o[0]), map(int, self.word(o[1])), strict=True))
        elif head == "IMAD" and "WIDE" in modifiers:
            base = self.wide(int(o[3][1:]))
            product = self.word(o[1]).astype(np.uint64) * self.word(o[2]).astype(np.uint64) + base
            self.write(o[0], product.astype(np.uint32))
            self.registers[int(o[0][1:]) + 1] = (product >> np.uint64(32)).astype(np.uint32)
        elif head == "ISETP":
            compared = self.word(o[2]) != self.word(o[3])
            self.predicates[o[0]] = compared & self.predicates[o[4]]
        elif head == "SHFL":
            self.write(o[1], self.word(o[2])[self.word(o[3]) & 31])
        else:
            self.write(o[0], self.computed(head, modifiers, o))

    def computed(self, head: str, modifiers: Sequence[str], o: Sequence[str]) -> Words:
        """What an arithmetic instruction writes to its first operand."""
        if head in ("FFMA", "FMUL", "FADD", "HADD2"):
            numbers = [self.number(operand).astype(np.float64) for operand in o[1:]]
            if head == "FFMA":
                exact = numbers[0] * numbers[1] + numbers[2]
            else:
                exact = numbers[0] * numbers[1] if head == "FMUL" else numbers[0] + numbers[1]
            return exact.astype(np.float32).view(np.uint32)
        if head == "F2FP":
            high, low = (self.number(operand).astype(np.float16).view(np.uint16).astype(np.uint32) for operand in o[1:])
            return high << np.uint32(16) | low
        if head == "HFMA2" and tuple(o[1:]) == ("-RZ", "RZ", "0", "0"):
            return np.zeros(LANES, np.uint32)
        if head == "SEL":
            chosen = self.predicates[o[3].lstrip("!")] ^ o[3].startswith("!")
            return np.where(chosen, self.word(o[1]), self.word(o[2]))
        words = [self.word(operand) for operand in o[1:] if not operand.endswith("PT")]
        if head == "MOV":
            return words[0]
        if head == "IMAD":
            return words[0] * words[1] + words[2]
        if head == "IADD3":
            return words[0] + words[1] + words[2]
        if head == "SHF":
            return words[0] << words[1] if modifiers[0] == "L" else words[2] >> words[1]
        if head == "LOP3":  # bit 4a + 2b + c of the table is the result for bits a, b, c
            minterms = [m for m in range(8) if int(o[4], 16) >> m & 1]
            terms = [[words[i] if m >> (2 - i) & 1 else ~words[i] for i in range(3)] for m in minterms]
            return np.bitwise_or.reduce([a & b & c for a, b, c in terms])
        if head == "PRMT":
            both = words[2].astype(np.uint64) << np.uint64(32) | words[0]
            picked = [both >> np.uint64(8 * (int(words[1][0]) >> 4 * i & 7)) & np.uint64(0xFF) for i in range(4)]
            packed = sum((byte << np.uint64(8 * i) for i, byte in enumerate(picked)), np.zeros(LANES, np.uint64))
            return packed.astype(np.uint32)
        raise NotImplementedError(f"{head}.{'.'.join(modifiers)} {', '.join(o)}")
