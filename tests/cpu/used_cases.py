"""Random calls that use only some rows of each sequence, and the oracle's answer."""

import numpy as np
import torch
from hypothesis import strategies as st

from attention.oracle import reference
from tests.cpu.attention_features import cases

NAMES = ("seqused_q", "seqused_k", "leftpad_k")


@st.composite
def used_cases(draw, dtypes=("float64",), **options):
    """A call of either function, and how much of each sequence it uses: any of the three, alone and together."""
    case = draw(cases(dtypes=dtypes, **options))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    drawn = {name: [draw(st.integers(0, each[name != "seqused_q"])) for each in case.lengths] for name in names}
    dtype = draw(st.sampled_from([torch.int32, torch.int64]))
    return case, {name: torch.tensor(values, dtype=dtype) for name, values in drawn.items()}


def places(case, used):
    """For each sequence: where its slot is in q, its used queries and its used keys, as indices of the tensors."""
    begin_q = begin_k = 0
    for at, (rows, keys) in enumerate(case.lengths):
        count = int(used["seqused_q"][at]) if "seqused_q" in used else rows
        end = int(used["seqused_k"][at]) if "seqused_k" in used else keys
        first = min(end, int(used["leftpad_k"][at])) if "leftpad_k" in used else 0
        if case.packed:
            yield slice(begin_q, begin_q + count), slice(begin_k + first, begin_k + end)
        else:
            yield (at, slice(0, count)), (at, slice(first, end))
        begin_q, begin_k = begin_q + rows, begin_k + keys


def oracle(case, used, q, k, v, slopes, sinks):
    """Float64 (out, lse), each sequence by itself: 0 and -inf past its used queries."""
    out = np.zeros((*q.shape[:-1], case.dim_v))
    lse = np.full(q.shape[:-1], -np.inf)
    q, k, v, slopes, sinks = (
        None if t is None else t.detach().double().cpu().numpy() for t in (q, k, v, slopes, sinks)
    )
    for at, (rows, keys) in enumerate(places(case, used)):
        band = {"causal": case.causal, "alignment": "bottom_right", "window": case.window}
        alibi = slopes if slopes is None or slopes.ndim == 1 else slopes[at]
        heads_first = (q[rows].swapaxes(0, 1), k[keys].swapaxes(0, 1), v[keys].swapaxes(0, 1))
        features = {"softcap": case.softcap, "scale": 0.4, "alibi": alibi, "sinks": sinks}
        found, found_lse = reference.attention(*heads_first, **band, **features)
        out[rows], lse[rows] = found.swapaxes(0, 1), found_lse.swapaxes(0, 1)
    return out, lse.swapaxes(-1, -2)
