"""The probes of tcgen05: their numbers are what the types hold, and every type and shape is executed."""

from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from microbench.device.emulated import EmulatedGpu
from microbench.device.protocol import Kernel
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.measure.emulated import EmulatedBench
from microbench.measure.launch import Launch, Measured
from microbench.point import Point
from microbench.probes import named
from microbench.shapes import tcgen05
from microbench.shapes.tcgen05_operands import BLACKWELL, FORMATS, TileOperands, bits, exact
from microbench.verify.executed import execute, execute_point

SCALED = [kind for kind, form in FORMATS.items() if form.scales]
ONCE = [(kind, shape, "ts") for kind in FORMATS if kind not in SCALED for shape in ("m64", "m256_pair")]
ONCE += [(kind, "m128_pair", "ss") for kind in FORMATS]
ONCE += [(kind, *of) for kind in SCALED for of in (("m128", "ts"), ("m256_pair", "ss"))]
PADDED = [kind for kind, form in FORMATS.items() if form.padded_from]
# A of these comes from shared memory alone.
ONCE = list(dict.fromkeys((kind, shape, "ss" if kind in PADDED else operands) for kind, shape, operands in ONCE))


def test_numbers_are_exact_in_their_type() -> None:
    floats = np.concatenate([np.random.default_rng(1).standard_normal(4096), np.exp2(np.arange(-12.0, 3.0)), [0.0]])
    for name, dtype in (("bf16", ml_dtypes.bfloat16), ("e4m3", ml_dtypes.float8_e4m3fn)):
        rounded = exact(FORMATS[name], floats.astype(np.float32))
        np.testing.assert_array_equal(rounded, floats.astype(np.float32).astype(dtype).astype(np.float32))
        np.testing.assert_array_equal(bits(FORMATS[name], rounded).view(dtype).astype(np.float32), rounded)
    tf32 = exact(FORMATS["tf32"], floats.astype(np.float32))
    assert not (tf32.view(np.uint32) & 0x1FFF).any() and np.abs(tf32 - floats).max() < 2**-10
    nearest = exact(FORMATS["mxf4"], floats.astype(np.float32))
    tie = np.isin(np.abs(floats), (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0))  # here to the smaller one, there to the even
    np.testing.assert_array_equal(nearest[~tie], floats[~tie].astype(ml_dtypes.float4_e2m1fn).astype(np.float32))
    packed = bits(FORMATS["mxf4"], nearest)
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)
    np.testing.assert_array_equal(codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32), nearest)
    for kind, dtype in (("e2m3", ml_dtypes.float6_e2m3fn), ("mx_e3m2", ml_dtypes.float6_e3m2fn)):
        held = exact(FORMATS[kind], np.arange(64, dtype=np.uint8).view(dtype).astype(np.float32))
        sixteen = bits(FORMATS[kind], held).reshape(-1, 16)
        unpacked = np.unpackbits(sixteen[:, :12], axis=1, bitorder="little").reshape(-1, 6)
        codes = np.packbits(unpacked, axis=1, bitorder="little").ravel()
        np.testing.assert_array_equal(codes.view(dtype).astype(np.float32), held)
        assert (codes & 31).tolist() == 2 * [*range(32)]
    padded = bits(FORMATS["e2m1"], exact(FORMATS["e2m1"], floats.astype(np.float32)[:32])).reshape(2, 16)
    np.testing.assert_array_equal(padded[:, :8].ravel(), packed[:16])
    assert bits(FORMATS["s8"], exact(FORMATS["s8"], np.float32([9, -9, 0.1]))).tolist() == [127, -127, 3]


@pytest.mark.parametrize(("kind", "shape", "operands"), ONCE)
@pytest.mark.parametrize("probe", ["tcgen05_latency", "tcgen05_throughput"])
def test_every_type_computes_what_the_probe_declares(probe: str, kind: str, shape: str, operands: str) -> None:
    point = Point((("type", kind), ("shape", shape), ("n", 32), ("operands", operands)))
    row = execute_point(named(probe), point, EmulatedGpu("sm100a"))
    assert (row.status, row.reason) == ("emulated", None) and row.checked


# What an owner of a B200 measures at once: tests/emulated/test_probes_executed.py has the points of --quick.
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("arch", BLACKWELL)
@pytest.mark.parametrize(
    "probe",
    ["tcgen05_latency", "tcgen05_throughput", "tmem_latency", "tmem_bandwidth", "tmem_copy_bandwidth"],
)
def test_every_point_of_a_sweep_computes_what_the_probe_declares(probe: str, arch: str) -> None:
    rows = execute((named(probe),), EmulatedGpu(arch))
    executed = [row for row in rows if row.status != "unsupported"]
    assert executed and [row for row in executed if row.status == "failed" or not row.checked] == []


def test_a_product_that_is_none_is_left_out_with_its_reason() -> None:
    ultra = EmulatedGpu("sm103a").machine
    integers = Point((("type", "s8"), ("shape", "m128"), ("n", 32), ("operands", "ss")))
    assert "sm103a has no tcgen05.mma of s8" in (tcgen05.refused(ultra, integers) or "")
    assert tcgen05.refused(EmulatedGpu("sm100a").machine, integers) is None
    for kind in PADDED:
        in_lanes = Point((("type", kind), ("shape", "m128"), ("n", 32), ("operands", "ts")))
        assert "in a figure alone" in (tcgen05.refused(ultra, in_lanes) or "")
    for shape, operands, reason in (("m64", "ss", "'Matrix Shape'"), ("m128_pair", "ts", "64 rows a block of A")):
        scaled = Point((("type", "mxf4"), ("shape", shape), ("n", 32), ("operands", operands)))
        assert reason in (tcgen05.refused(ultra, scaled) or "")


@pytest.mark.parametrize(("kind", "n"), [("mxf8", 96), ("nvfp4", 192), ("nvfp4", 256)])
def test_halves_of_many_columns_have_their_factors_in_several_columns(kind: str, n: int) -> None:
    point = Point((("type", kind), ("shape", "m128_pair"), ("n", n), ("operands", "ss")))
    assert execute_point(named("tcgen05_latency"), point, EmulatedGpu("sm100a")).checked


@pytest.mark.parametrize("kind", SCALED)
def test_scales_are_those_of_their_type_and_lie_where_a_copy_brings_them(kind: str) -> None:
    form = FORMATS[kind]
    assert form.scales is not None
    dtype = ml_dtypes.float8_e8m0fnu if form.scales.number else ml_dtypes.float8_e4m3fn
    assert np.array(form.scales.codes, np.uint8).view(dtype).astype(np.float64).tolist() == list(form.scales.values)
    operands = TileOperands.of(form, 256, 96, blocks=2)
    assert operands.scales.shape == (2, 3, 32, 16)
    per_row = form.depth // form.scales.per_scale
    used = operands.scales.reshape(2, 3, 32, 4, 4)[..., :per_row]
    assert set(used[:, 0].ravel()) | set(used[:, 1, :, :3].ravel()) <= set(form.scales.codes)
    np.testing.assert_array_equal(used[0, 1:], used[1, 1:])  # each block of a pair scales all columns of B
    assert (used[0, 0] != used[1, 0]).any()  # and its own rows of A


def test_small_products_are_bound_by_shared_memory_and_pairs_less() -> None:
    machine = EmulatedGpu("sm100a").machine

    def least(shape: str, n: int, operands: str = "ss") -> float | None:
        return tcgen05.least_cycles(
            machine, Point((("type", "bf16"), ("shape", shape), ("n", n), ("operands", operands)))
        )

    # 128 + 64 rows of 32 bytes at 128 a clock; a pair's blocks read half of B each.
    assert (least("m128", 64), least("m256_pair", 64), least("m128", 64, "ts")) == (48, 40, 32)
    assert least("m128", 128) == least("m256_pair", 128) == 64


class AtItsRate(EmulatedBench):
    """A chip whose tensor cores never wait: each product takes its FLOP over those of its SMs."""

    def kernels(self, point: Point) -> tuple[Kernel, ...]:
        self.point = point
        return (Kernel(None),)

    def trips(self, count: int) -> int:
        return count

    def cycles_of(self, launch: Launch, products: int) -> float:
        """`products` a trip of 2 M N K operations, on one SM or on two."""
        m = {"m64": 64, "m128": 128, "m128_pair": 128, "m256_pair": 256}[self.point["shape"]]
        depth = {"bf16": 16, "tf32": 8, "mxf4": 64, "nvfp4": 64}.get(self.point["type"], 32)
        rate = tensor_flops_per_clk(self.machine, self.point["type"])
        assert rate is not None
        return products * int(launch.args[-2]) * 2 * m * self.point["n"] * depth / (rate * launch.cluster)

    def cycles(self, short: Launch, long: Launch, operations: float) -> Measured:
        per_trip = 1 if self.probe.name == "tcgen05_latency" else 8
        took = (self.cycles_of(long, per_trip) - self.cycles_of(short, per_trip)) / operations
        return Measured(took, took, took, 1, 1000.0)

    def timed(
        self,
        launch: Launch,
        cold: bool = False,
        inner: int = 1,
        spaced_s: float = 0.0,
        behind: Callable[[], object] | None = None,
    ) -> Measured:
        took = self.cycles_of(replace(launch, args=launch.args[:-1]), 8) / (self.machine.clock_hz or 1.0)
        return Measured(took, took, took, 1, 1000.0)


@pytest.mark.parametrize("probe", ["tcgen05_latency", "tcgen05_throughput"])
def test_a_chip_at_its_rate_reports_its_bound(probe: str) -> None:
    asked = named(probe)
    device = EmulatedGpu("sm100a")
    for point in asked.points():
        fed = point["n"] >= 128 and (point["shape"] != "m64" or point["operands"] == "ts")  # by shared memory
        if not fed or tcgen05.refused(device.machine, point):
            continue
        for sample in asked.run(AtItsRate(device, asked, quick=False), point):
            lower, upper = asked.metric(sample.metric).bound.at(device.machine, point)
            limit = lower or upper
            assert limit is None or sample.value == pytest.approx(limit), (point, sample.metric)


@pytest.mark.parametrize("m", [128, 256])
def test_each_block_of_a_pair_scales_b_by_the_factors_in_its_own_tensor_memory(
    monkeypatch: pytest.MonkeyPatch, m: int
) -> None:
    point = Point((("type", "mxf8"), ("shape", f"m{m}_pair"), ("n", 32), ("operands", "ss")))
    made = TileOperands.of(FORMATS["mxf8"], m, 32, blocks=2)
    doubled = made.scales.copy()
    doubled[1, 1:] += 1  # of ue8m0 twice as much
    monkeypatch.setattr(TileOperands, "of", lambda *_: replace(made, scales=doubled))
    row = execute_point(named("tcgen05_latency"), point, EmulatedGpu("sm100a"))
    assert row.status != "emulated" and "differ" in (row.reason or "")
