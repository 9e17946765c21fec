"""Bounds of what no probe of ours measures yet: integer instructions, and tensor products of other types and shapes.

Numbers come from machine/arch.py and machine/tensor.py, as those of the probes do. A probe that measures one of these
takes its rule from here: quantities.csv then names its constant, and the probe's own bound is asked first.
"""

import re
from collections.abc import Callable
from typing import Literal

from microbench.bounds import limit
from microbench.machine.arch import Machine
from microbench.machine.tensor import SPARSE, tensor_flops_per_clk
from microbench.point import Point
from microbench.probe import Bound, Metric
from microbench.published.facts import Fact, Rejected

# mma_latency_m16n8k8_f32_tf32_cycles: shape, accumulator where it is named, operand.
_PRODUCT = re.compile(r"_m(\d+)n(\d+)k(\d+)_(?:(f32|f16|s32|f64)_)?([a-z]+\d+(?:m\d+)?)")
# cuBLASLt multiplies fp8 by the block-scaled instruction where there is one, which GeForce boards do not halve.
_GEMM = {"fp8": "mxf8"}
_TENSOR = "tensor-core rate of these types"
_PER_SECOND = {"TFLOPS": 1e12, "TOPS": 1e12}
_PER_CLK = {"FLOP/clk/SM": 1.0, "OP/clk/SM": 1.0, "FMA/clk/SM": 2.0}


def unmeasured(fact: Fact | Rejected) -> Metric | None:
    """The metric of a fact about nothing that we measure, in the fact's unit; None where no document limits it."""
    name = fact.quantity
    if re.match(r"(instr|dpx)_latency_", name) and fact.unit == "cycles":
        return _metric(fact, "no dependent result is ready sooner", "lower", limit(lambda sm: sm.alu_latency_cycles))
    if name.startswith("dpx_throughput_"):
        return _metric(fact, "lanes of the integer pipe", "upper", limit(lambda sm: sm.int32_lanes))
    product, gemm = _PRODUCT.search(name), re.match(r"gemm_([a-z]+\d+)_tflops", name)
    if gemm:
        # One of f16 may accumulate in f16.
        return _rate(fact, _GEMM.get(gemm[1], gemm[1]), "f16" if gemm[1] == "fp16" else "f32")
    if product is None:
        return None
    accumulator, operand = product[4] or "f32", product[5]
    if fact.unit == "cycles" and "latency" in name and "_sp_" not in name:
        return _latency(fact, 2.0 * int(product[1]) * int(product[2]) * int(product[3]), operand, accumulator)
    return _rate(fact, operand, accumulator)


Limit = Callable[[Machine, Point], float | None]


def _metric(fact: Fact | Rejected, why: str, side: Literal["lower", "upper"], end: Limit) -> Metric:
    bound = Bound(why, lower=end) if side == "lower" else Bound(why, upper=end)
    return Metric(fact.quantity, fact.unit, bound)


def _latency(fact: Fact | Rejected, flops: float, operand: str, accumulator: str) -> Metric:
    """At least the time of the tensor cores that take part: one of the SM's four for mma.sync, two SMs' for 2sm."""
    sms = 2.0 if "_2sm" in fact.quantity else 0.25 if fact.quantity.startswith("mma_") else 1.0

    def least(machine: Machine, _: Point) -> float | None:
        rate = tensor_flops_per_clk(machine, operand, accumulator)
        return flops / (rate * sms) if rate else None

    return _metric(fact, _TENSOR, "lower", least)


def _rate(fact: Fact | Rejected, operand: str, accumulator: str) -> Metric | None:
    counted = SPARSE if "_sp_" in fact.quantity else 1

    def per_clk(machine: Machine, _: Point) -> float | None:
        rate = tensor_flops_per_clk(machine, operand, accumulator)
        return rate * counted / _PER_CLK[fact.unit] if rate else None

    def per_second(machine: Machine, _: Point) -> float | None:
        rate = tensor_flops_per_clk(machine, operand, accumulator)
        hz = machine.clock_hz
        return rate * counted * machine.sm_count * hz / _PER_SECOND[fact.unit] if rate and hz else None

    if fact.unit in _PER_CLK:
        return _metric(fact, _TENSOR, "upper", per_clk)
    if fact.unit in _PER_SECOND:
        return _metric(fact, f"{_TENSOR}, on every SM at the highest clock", "upper", per_second)
    return None
