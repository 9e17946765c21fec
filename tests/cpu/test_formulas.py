"""A feature whose formulas disagree is told so, before a kernel runs."""

from typing import Any

import pytest

from attention.feature import Array, At, Feature, Problem
from attention.features.alibi import Alibi
from attention.features.mask import Masked
from attention.features.softcap import Softcap
from attention.verify import build_matrix, formulas


class AnotherSlope(Alibi):
    def change(self, scores: Array, at: At, problem: Problem, *operands: Array) -> tuple[Array, Any]:
        return super().change(scores, at, problem, *(2 * each for each in operands))


class NoGradient(Softcap):
    gradient = Feature.gradient


class NoOperandGradient(Alibi):
    operand_gradients = Feature.operand_gradients


class HidesNothing(Masked):
    hide = Feature.hide


@pytest.mark.parametrize("feature", build_matrix.DRAWN, ids=lambda feature: feature.name)
def test_the_features_of_the_tree_agree_with_their_oracles(feature: Feature) -> None:
    assert formulas.faults(feature, build_matrix.with_feature(feature)[0]) == ()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (AnotherSlope, "change() gives other scores than oracle()"),
        (NoGradient, "gradient() is not the gradient of oracle()"),
        (NoOperandGradient, "operand_gradients() is not the gradient of oracle() for alibi"),
        (HidesNothing, "hide() hides other keys than oracle_hides()"),
    ],
)
def test_what_disagrees_is_named(wrong: type[Feature], says: str) -> None:
    feature = wrong()
    feature.name = wrong.__mro__[1].__module__.rpartition(".")[2]
    right = next(each for each in build_matrix.DRAWN if each.name == feature.name)
    assert says in formulas.faults(feature, build_matrix.with_feature(right)[0])
