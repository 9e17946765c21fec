"""The way to the forward operator: past torch's dispatcher where that has nothing to add.

Whoever needs the dispatcher (gradients, transforms, modes, a compiler) meets the operators of op.operators. They
are registered with torch at the first such call: that takes 17 ms, as long as the rest of a first call.
"""

import torch

from attention.call import NO_EXTRAS, Call
from attention.op.eager import needs_no_dispatch
from attention.op.flops import COUNTER
from attention.op.plan import Plan
from attention.op.served import compute
from attention.op.when_imported import when_imported


def forward(call: Call, plan: Plan | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """smscope::attention_forward, past the dispatcher where that has nothing to add.

    `plan`: what the operator would look up for this call, which is judged already.
    """
    query, key, value = call.query, call.key, call.value
    if needs_no_dispatch(query, key, value, *(() if call.extras is NO_EXTRAS else call.extras)):
        return compute(call, plan)
    _register()
    results: tuple[torch.Tensor, torch.Tensor] = torch.ops.smscope.attention_forward(*call.arguments())
    return results


def _register() -> None:
    from attention.op import operators as operator  # noqa: F401  by this statement, which torch's compiler follows


when_imported(COUNTER, _register)  # a counter copies the formulas when it is made, before it meets a call
