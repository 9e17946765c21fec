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
# # Choosing
#
# **The question.** Which tile does the model choose for which call, where does the choice turn, and what would another
# GPU's constant make of it?
#
# The GPU is an H200. Every problem has 65,536 tokens in sequences of one length, 16 heads and bfloat16. Head dims are
# the multiples of 16 that the kernels compute: one between them is computed at the next. Unless it says otherwise, a
# choice is by the profile's constants alone, without any timing of attention.

# %%
import io
from collections import Counter

from IPython.display import Markdown
from rich.console import Console

import smscope
from attention.choose import constants
from attention.choose.candidates import TIE_BAND
from attention.compare.results import HOPPER
from microbench.report import figures
from microbench.results.profile import Profile
from notebooks.ladders import choice_map, figure_choice_map, kept
from notebooks.ladders.table import table

figures.style()
profile = Profile.load(kept.MAPPED)
MASKS = {"full": False, "causal": True}
MAP = {mask: choice_map.places(profile, causal) for mask, causal in MASKS.items()}
SOURCE = (
    f"Constants of data/profiles/{profile.gpu}.json, no timing. bfloat16, {choice_map.TOKENS} tokens, "
    f"{choice_map.HEADS} heads, full and causal."
)

# %% [markdown]
# ## The map
#
# The fastest of all our configurations in each place. Three warpgroups hold more rows for each read of K and V, and
# leave each thread fewer registers, so that their tiles have fewer keys. The wider the head, the fewer keys fit. Short
# sequences take small tiles: one of 192 rows has rows that do not exist where a sequence has 256.

# %%
figure = figure_choice_map.tiles([(f"{profile.name}, {mask}", places) for mask, places in MAP.items()], SOURCE)
kept.save(figure, kept.CHOICE_MAP, kept.numbers_of_map())

# %%
every = [place for places in MAP.values() for place in places]
counted = Counter((place.ours, place.config) for place in every)
table(
    "configuration, by constants alone | places",
    ((f"`{path}` {config}", count) for (path, config), count in counted.most_common()),
)


# %%
def dims_of(places) -> str:
    return ", ".join(map(str, sorted({place.at[1] for place in places}))) or "none"


calls = [(place, choice_map.called(profile, place)) for place in every]
torchs = [place for place in every if place.is_torchs]
called_torchs = [(place, pick) for place, pick in calls if pick.owner == "torch"]
turned = [place for place, pick in calls if pick.owner != "torch" and pick.config != place.config]
others = [place for place in every if place.ours != HOPPER]
Markdown(
    f"Of {len(every)} places the Hopper forward is the fastest of ours in {len(every) - len(others)}, and the sm80 "
    f"forward in {len(others)}. By constants alone a kernel of torch's goes first in {len(torchs)}, at head dims "
    f"{dims_of(torchs)} (dots). A call is advised by timings on file beside the constants, of our kernels and of "
    f"torch's, and then it goes to torch's in {len(called_torchs)}"
    + "".join(f" ({place.at[0]} tokens, head dim {place.at[1]}: `{pick.variant}`)" for place, pick in called_torchs)
    + f". Of ours it takes another configuration than the map's in {len(turned)}. Candidates within {TIE_BAND:.0%} of "
    "the fastest tie, so that borders of the map are no sharper than that."
)

# %% [markdown]
# ## If exp2 were twice as fast
#
# The same map with one constant changed: `mufu_ex2_per_clk_sm` doubled. Green is the predicted time that goes; a frame
# is a place whose tile changes, with the new one in it.

# %%
EX2 = "mufu_ex2_per_clk_sm"
faster = constants.scaled(profile, EX2, 2.0)
CHANGES = {mask: choice_map.changes(MAP[mask], choice_map.places(faster, causal)) for mask, causal in MASKS.items()}
figure = figure_choice_map.differences(
    [(f"{profile.name}, {mask}, exp2 twice as fast", found) for mask, found in CHANGES.items()], SOURCE
)

# %%
found = [change for changes in CHANGES.values() for change in changes]
changed = [change for change in found if change.changed]
fewer = [change for change in changed if change.after.tile[0] < change.before.tile[0]]
most = max(found, key=lambda change: change.saved)
none = min(dim for dim in choice_map.HEAD_DIMS if all(c.saved < 0.02 for c in found if c.before.at[1] >= dim))
Markdown(
    f"{len(changed)} of {len(found)} tiles change, {len(fewer)} of them from three warpgroups to two. Most is gained "
    f"at head dim {most.before.at[1]}: {most.saved:.0%} of the predicted time. From head dim {none} on it is less than "
    "2 % in every place: there the products are the longest of their phase, and faster exponentials hide behind them. "
    "A B200 went the other way, with products twice as fast, and a B300 doubles the exponential units as well "
    "([13_blackwell](13_blackwell.ipynb))."
)

# %% [markdown]
# ## Where one choice turns
#
# Sequences of 4096, head dim 128, full. Each constant that its prediction rests on, multiplied by more and more in
# either direction: the first factor, in eighths of an octave up to two, at which the pick among ours is another one.

# %%
PROBLEM = choice_map.posed(4096, 128, causal=False)
(here,) = (place for place in MAP["full"] if place.problem == PROBLEM)
explained = smscope.explain(PROBLEM, gpu=profile.gpu)
names = [each.name for each in explained.constants]
turns = choice_map.turns(profile, PROBLEM, names)
table(
    f"constant | factor | picked instead of {here.config}",
    ((f"`{turn.constant}`", f"{turn.factor:.2f}", turn.config) for turn in turns),
)

# %%
stay = [name for name in names if name not in {turn.constant for turn in turns}]
Markdown(f"No factor up to two turns it for {', '.join(f'`{name}`' for name in stay)}.")

# %% [markdown]
# ## What explain() says of it
#
# This is what a call would run, timings and all, without the list of what is refused.

# %%
console = Console(file=io.StringIO(), width=140, color_system=None, force_jupyter=False)
console.print(explained)
print(console.file.getvalue().partition("\nRefused")[0])
