"""Made-up profiles with round numbers, so that a test can say which constant moves a choice."""

from pathlib import Path

from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant

# A core of two 512-bit FMA pipes at 4 GHz, and caches of a common server CPU; four cores.
HOST = {
    "l1_size_bytes": 48 * 1024,
    "l2_size_bytes": 1024 * 1024,
    "l3_size_bytes": 32 * 1024 * 1024,
    "l1_bandwidth_bytes_per_s": 500e9,
    "l2_bandwidth_bytes_per_s": 250e9,
    "l3_bandwidth_bytes_per_s": 400e9,
    "dram_bandwidth_bytes_per_s": 100e9,
    "fma_f32_per_s": 480e9,
    "fma_f32_one_thread_per_s": 130e9,
    "exp_f32_per_s": 48e9,
    "exp_f32_one_thread_per_s": 13e9,
    "matmul_f32_flops_per_s": 500e9,
}
HOPPER = {
    "wgmma_bf16_burst_flops_per_s": 900e12,
    "mma_bf16_burst_flops_per_s": 620e12,
    "wgmma_n128_bf16_burst_flops_per_s": 900e12,
    "wgmma_n128_bf16_flops_per_clk_sm": 4096,
    "wgmma_n128_bf16_latency_cycles": 118,
    "wgmma_n128_bf16_interval_cycles": 64,
    "mufu_ex2_per_clk_sm": 16,
    "mufu_ex2_latency_cycles": 18,
    "ffma_per_clk_sm": 128,
    "ffma_latency_cycles": 4,
    "smem_bandwidth_bytes_per_clk_sm": 128,
    "smem_latency_cycles": 24,
    "l2_bandwidth_bytes_per_s": 6e12,
    "l2_latency_cycles": 280,
    "dram_bandwidth_bytes_per_s": 3e12,
    "dram_latency_cycles": 660,
    "event_to_event_empty_kernel_ns": 3000,
}


def host_profile(**changes: float | None) -> Profile:
    """A four-core CPU. A changed constant has another value, or is missing where it is None."""
    return _profile("host-test-4c", "host", 4, HOST | changes)


def hopper_profile(**changes: float | None) -> Profile:
    """A Hopper GPU of 132 SMs."""
    return _profile("h100-test", "sm90a", 132, HOPPER | changes)


def saved(data: Path, *profiles: Profile) -> Path:
    """Profiles as files of a data folder; the last one's."""
    (data / "profiles").mkdir(exist_ok=True)
    for profile in profiles:
        file = data / "profiles" / f"{profile.gpu}.json"
        file.write_text(profile.model_dump_json())
    return file


def forget_choices() -> None:
    """What calls have decided so far in this process."""
    from attention.frontends import route
    from attention.frontends import sdpa as frontend
    from attention.op import plan

    for cache in (plan.plan_of, plan._pick_of, route._route):
        cache.cache_clear()
    frontend._torchs_kinds.clear()
    frontend.KNOWN.forget()
    frontend._cpu_is_torchs = None


def _profile(gpu: str, arch: str, sm_count: int, values: dict[str, float | None]) -> Profile:
    made = {"n": 6, "runs": ("made-up",), "probe": "none", "method": "host" if arch == "host" else "nvrtc"}

    def constant(name: str, value: float) -> ProfileConstant:
        unit = "bytes" if name.endswith("size_bytes") else "1/s"
        return ProfileConstant(name=name, value=value, low=value * 0.99, high=value * 1.01, unit=unit, **made)

    constants = tuple(constant(*each) for each in values.items() if each[1] is not None)
    return Profile(gpu=gpu, name=gpu, arch=arch, sm_count=sm_count, clock_hz=1.7e9, constants=constants)
