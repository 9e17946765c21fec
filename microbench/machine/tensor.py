"""What the tensor cores of one SM do at most, dense, by the types of operands and accumulators: the one table of it.

Each architecture has one number, Limits.tensor_f16_flops_per_clk. A type follows from it by how many of its operands
are as wide as one f16 (tf32 by half as many). GeForce boards, from Turing on, add to f32 accumulators at half the rate
of the same SM elsewhere: an RTX 5090 is rated at 209.5 TFLOPS (512 a clock and SM) where an RTX PRO 6000 Blackwell has
503.8 (1024). Block-scaled (mx) types, integers and f16 accumulators are not halved. A board whose name does not say
GeForce gets the full rate, so that a bound refuses nothing that its board may do.

Sources: data/published/cc_op_throughput.csv (RTXBWP), specs.csv, and cudnn-frontend pull 597 for the RTX PRO.
"""

from microbench.machine.arch import Machine

GEFORCE_F32_SHARE = 0.5
SPARSE = 2  # 2:4 sparsity counts the zeros as well
# By type of operand, against f16.
_AGAINST_F16 = {
    "tf32": 0.5,
    **dict.fromkeys(("f16", "fp16", "bf16"), 1.0),
    **dict.fromkeys(("e4m3", "e5m2", "fp8", "mxf8", "s8", "u8", "int8"), 2.0),
    # Of 6 and 4 bits in a kind of 8, K of one instruction is that of 8 bits (PTX ISA, 'Matrix Shape').
    **dict.fromkeys(("e2m3", "e3m2", "e2m1", "mx_e2m3", "mx_e3m2", "mx_e2m1"), 2.0),
    **dict.fromkeys(("f4", "mxf4", "nvfp4", "fp4", "s4", "u4"), 4.0),
    "b1": 16.0,
}
# Blackwell Ultra has half as much again of the scaled 4-bit types: 15 PFLOPS beside 2.5 of bf16.
_OF_ARCH = {("sm103a", kind): 6.0 for kind in ("mxf4", "nvfp4", "fp4")}
_HALVED = frozenset({"tf32", "f16", "fp16", "bf16", "e4m3", "e5m2", "fp8", "e2m3", "e3m2", "e2m1"})


def tensor_flops_per_clk(machine: Machine, operand: str = "f16", accumulator: str = "f32") -> float | None:
    """Operations, two a multiply-add, per clock and SM; None where no document says it.

    `operand` and `accumulator` are called as in PTX ('bf16', 'e4m3', 's8'), or as data sheets do ('fp8').
    """
    against_f16 = _OF_ARCH.get((machine.arch.name, operand), _AGAINST_F16.get(operand))
    if machine.arch.limits is None or against_f16 is None:
        return None
    halved = machine.geforce and accumulator == "f32" and operand in _HALVED
    return machine.arch.limits.tensor_f16_flops_per_clk * against_f16 * (GEFORCE_F32_SHARE if halved else 1.0)
