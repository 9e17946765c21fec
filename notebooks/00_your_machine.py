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
# # Your machine
#
# **The question.** What does `make bench` know of the machine in front of you: how far is its memory, how fast does it
# compute, which of that can be believed, and what does attention do with it?
#
# Everything here is drawn from `data/`. Without a name it opens the machine that it runs on, and says so where that one
# has no run yet. Name another in the next cell, or by `SMSCOPE_MACHINE=h100-sxm-80gb make lab`.

# %% tags=["parameters"]
import os

MACHINE = os.environ.get("SMSCOPE_MACHINE", "")

# %%
from IPython.display import Markdown

import microbench
from attention.choose.explain.explain import explain_on
from attention.cli.picks import PICKS
from attention.problem import AttentionProblem
from microbench import report
from microbench.report import figures, figures_machine
from microbench.results import record, this_machine
from microbench.results.doubt import doubts, told

figures.style()
machine = this_machine.opened(MACHINE)
profile = microbench.Profile.load(machine.gpu)
runs = microbench.load_runs(machine.gpu)
units = "cores" if profile.arch == "host" else "SMs"
Markdown(f"**{machine.why}** {profile.name}: {profile.sm_count} {units}, {len(profile.constants)} constants.")

# %% [markdown]
# ## The runs
#
# One file a run. A full run has six campaigns, each a process of its own; more stand behind them where something else
# used the machine and a constant was in doubt. `disturbed` counts rows that were measured beside other work.

# %%
disturbed = runs["flags"].map(lambda flags: any(flag in record.DISTURBANCES for flag in flags))
runs.assign(disturbed=disturbed).groupby("run_id").agg(
    records=("value", "size"),
    measured=("value", "count"),
    probes=("probe", "nunique"),
    campaigns=("campaign", "nunique"),
    disturbed=("disturbed", "sum"),
    quick=("quick", "first"),
)

# %% [markdown]
# ## The memory ladder
#
# One load waits for the one before it, in random order over a footprint that grows. Where the curve is flat a level of
# memory answers; where it rises that level is full. The band spans the campaigns, the dashes are the profile's levels.

# %%
ladder = figures_machine.ladder(profile, runs)

# %% [markdown]
# ## Bytes per second
#
# A CPU's levels by the number of threads, a GPU's DRAM by the bytes in flight on each SM. Where a curve still rises at
# its end, more would still help, and the profile calls its peak a lower bound (≥).

# %%
threads = figures_machine.bandwidth_by_threads(profile, runs)
in_flight = figures_machine.dram(profile, runs)

# %% [markdown]
# ## Against what physics allows

# %%
shares = figures.share_of_bound(profile)

# %% [markdown]
# ## What can be believed
#
# A constant is in doubt where it was measured beside other work, or where not even half of the campaigns agree. It is
# said here, and no kernel is picked by it.

# %%
Markdown("\n".join(f"- {sentence}" for sentence in told(doubts(profile))) or "Nothing is in doubt.")

# %%
Markdown(report.results(profile))

# %% [markdown]
# ## What attention does with it
#
# The same constants, put into the model of each kernel, choose the one that runs. A short prompt, a long one, and one
# token against a long cache:

# %%
dtype = "float32" if profile.arch == "host" else "float16" if profile.arch in ("sm70", "sm75") else "bfloat16"
picks = [
    explain_on(profile, AttentionProblem.parse_shape(shape, dtype=dtype, causal=causal)) for shape, causal in PICKS
]
Markdown("\n".join(f"- {each.headline()}." for each in picks))

# %% [markdown]
# Which constants decided, and what every other kernel would take, for the first of them:

# %%
print(picks[0])

# %% [markdown]
# ## Where to go from here
#
# - `make report` writes these figures and tables as one page that can be mailed.
# - `python -m microbench compare <yours> <another>` sets two machines side by side.
# - [01_memory_hierarchy](01_memory_hierarchy.ipynb) asks the same of an H100 in depth, by two methods.
