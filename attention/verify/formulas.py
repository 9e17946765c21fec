"""A feature's formulas beside one another: what torch computes and differentiates is what the oracle says."""

from collections.abc import Iterator

import torch

from attention.feature import At, Feature
from attention.kernels.torch.composed.pieces import with_every_axis
from attention.problem import AttentionProblem
from attention.verify.inputs import Draw

SIZES = {"b": 2, "h": 3, "q": 7, "k": 9}
CLOSE = 1e-9  # in float64
TRIALS = 3


def faults(feature: Feature, problem: AttentionProblem) -> tuple[str, ...]:
    """Where `change`, `hide` and the gradients disagree with the oracle and autograd's of it, a sentence each."""
    found = [fault for seed in range(TRIALS) for fault in _faults(feature, problem, seed)]
    return tuple(dict.fromkeys(found))


def _faults(feature: Feature, problem: AttentionProblem, seed: int) -> Iterator[str]:
    lengths = (torch.full((SIZES["b"],), SIZES[axis]) for axis in "qk")
    draw = Draw(torch.Generator().manual_seed(seed), torch.device("cpu"), 0.7, problem, *lengths)
    scores = draw.normal(*SIZES.values()).double().requires_grad_()
    at = At(torch.arange(SIZES["q"])[:, None], torch.arange(SIZES["k"]), SIZES["q"], SIZES["k"])
    operands: list[torch.Tensor | None] = []
    for operand in feature.operands:
        values = feature.values(draw, operand, tuple(SIZES[axis] for axis in operand.axes))
        if values is None:
            operands.append(None)
            continue
        whole = with_every_axis(operand, values.double() if values.is_floating_point() else values)
        operands.append(whole.requires_grad_(whole.is_floating_point()))
    given = [None if each is None else each.detach() for each in operands]
    at = feature.where(at, *given)
    hides, hidden = feature.oracle_hides(at, problem, *given), feature.hide(at, problem, *given)
    if (hides is None) != (hidden is None) or (hides is not None and not (hides == hidden).all()):
        yield "hide() hides other keys than oracle_hides()"
    expected = feature.oracle(torch, scores, at, problem, *operands)
    changed, kept = feature.change(scores.detach().clone(), at, problem, *given)
    if not _close(changed, expected):
        yield "change() gives other scores than oracle()"
        return
    if feature.logit or expected is scores:
        return  # a logit joins the softmax beside the scores
    d_scores = draw.normal(*SIZES.values()).double()
    wanted = [scores, *(each for each in operands if each is not None and each.requires_grad)]
    right = torch.autograd.grad(expected, wanted, d_scores, allow_unused=True, materialize_grads=True)
    if not _close(feature.gradient(d_scores.clone(), kept, at, problem, *given), right[0]):
        yield "gradient() is not the gradient of oracle()"
    theirs = feature.operand_gradients(d_scores.clone(), kept, at, problem, *given)
    names = [operand.name for operand, each in zip(feature.operands, given, strict=True) if _floats(each)]
    of_floats = [grad for grad, each in zip(theirs, given, strict=True) if _floats(each)]
    for name, grad, one in zip(names, of_floats, right[1:], strict=True):
        if grad is None or not _close(grad.sum_to_size(one.shape), one):
            yield f"operand_gradients() is not the gradient of oracle() for {name}"


def _floats(given: torch.Tensor | None) -> bool:
    return given is not None and given.is_floating_point()


def _close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other, rtol=CLOSE, atol=CLOSE)
