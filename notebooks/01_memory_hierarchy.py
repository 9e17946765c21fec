# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The memory hierarchy
#
# **The question.** How long does one load take, how many bytes does an SM get per clock, and where does each level of
# memory end? An attention kernel is a schedule of exactly these: tiles that fit shared memory, K and V that stay in the
# L2, and enough bytes in flight that DRAM never waits.
#
# Everything below is drawn from `data/`: it executes on any CPU. The numbers were measured by `make bench`.

# %%

import microbench
from microbench import arch, build, plots, probes
from microbench.plots import Curve, pick
from microbench.probe import Point

plots.style()
GPU = "h100-sxm-80gb"
runs = microbench.load_runs()
h100 = runs[runs["gpu"] == GPU]
profile = microbench.Profile.load(GPU)
host = microbench.Profile.load("host")
f"{profile.name}: {len(h100):,} records; {host.name}: {(runs['gpu'] == host.gpu).sum():,} records"

# %% [markdown]
# ## The minimal kernel, and what the compiler made of it
#
# One thread follows a ring of raw addresses. The chain is the measurement, so the proof that nothing else is in it belongs to
# the result: the contract says *32 loads, each reading the result of the one before, and a loop counter*.

# %%
ladder = probes.named("memory_latency")
print((build.HEADERS / "chase.cuh").read_text().split("template", 1)[1].join(["template", ""]))

# %%
(first,) = ladder.builds(Point((("footprint_bytes", 4096),)))
cubin = build.compile_probe(ladder, first, arch.by_name("sm90a"))
timed = [i for i in cubin.instructions() if i.head in ("CS2R", "LDG", "BRA")]
for instruction in timed[:8]:
    control = instruction.control
    print(f"stall {control.stall:2}  waits {control.wait_mask:06b}   {instruction.text}")
print("...")

# %% [markdown]
# A `LDG.E.64` waits for the scoreboard of the one before it, and nothing stands between.
#
# ## One chase, every level
#
# The footprint grows; every line is used once a lap, in random order. Where the curve is flat, a level of memory answers; where it
# rises, the level is full. The dashes are published values for the same chip.


# %%
def ladder_of(gpu: str, probe: str, **where: object):
    return pick(runs, probe, "latency_ns", gpu=gpu, **where)


published = {
    "L1, H800 (32 cycles)": 32.0 / 1.755,
    "L2 near, H100 PCIe": 265.5 / 1.755,
    "DRAM, GH200": 346.0,
}
host_rows = ladder_of(host.gpu, "host_memory_latency")
plots.ladder(
    [
        Curve(ladder_of(GPU, "memory_latency", method="nvrtc"), f"{profile.name}, all SMs"),
        Curve(ladder_of(GPU, "l2_visible_size", method="nvrtc"), f"{profile.name}, one SM alone"),
        Curve(host_rows, f"{host.name}"),
    ],
    tuple(published.items()),
)
