"""Calls that bring a mask, found again by one question: what it must be like. No GPU is here."""

from typing import Any

import pytest
import torch

from attention.op.known import Known
from tests.cpu.test_known import OPTIONS, drawn, looked_up


def bringing_a(mask: torch.Tensor, at: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Known, list[Any]]:
    """One kind, that brings a tensor of a feature at this place of two; and the calls that are looked up."""
    known = Known(of_cpu=True)
    known.keep(*drawn(), OPTIONS, lambda *given: given[4], others(mask, at))
    return known, looked_up(known, monkeypatch)


def others(mask: torch.Tensor, at: int) -> tuple[torch.Tensor | None, ...]:
    return (mask, None) if at == 0 else (None, mask)


@pytest.mark.parametrize("at", [0, 1])
def test_a_recent_kind_that_brings_a_mask_is_found_by_one_question(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mask, another = torch.zeros(16, 16), torch.ones(16, 16)
    known, met = bringing_a(mask, at, monkeypatch)
    (given,) = known.served(*drawn(), OPTIONS, others(another, at))
    assert given is another and not met


@pytest.mark.parametrize(
    "other",
    [
        torch.zeros(16 * 16 + 1)[1:].view(16, 16),  # 4 bytes behind a multiple of 16
        torch.zeros(16, 16).T,
        torch.zeros(16, 16).half(),
        torch.zeros(1, 16).expand(16, 16),
    ],
    ids=["elsewhere by 16 bytes", "turned", "of another dtype", "broadcast"],
)
def test_a_mask_unlike_that_of_the_kind_is_judged(other: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    known, met = bringing_a(torch.zeros(16, 16), 0, monkeypatch)
    if other.is_contiguous() and other.dtype is torch.float32:
        assert other.data_ptr() % 16 != 0
    assert known.served(*drawn(), OPTIONS, others(other, 0)) is None and len(met) == 1


def test_like_tensors_of_other_features_are_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    slopes = torch.zeros(16, 16)
    known, met = bringing_a(slopes, 0, monkeypatch)
    assert known.served(*drawn(), OPTIONS, others(slopes, 1)) is None and len(met) == 1


def test_a_mask_that_wants_a_gradient_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept where none was wanted of it, and called where one is."""
    mask = torch.zeros(16, 16, requires_grad=True)
    with torch.no_grad():
        known, _ = bringing_a(mask, 0, monkeypatch)
        assert known.served(*drawn(), OPTIONS, others(mask, 0)) is not None
    assert known.served(*drawn(), OPTIONS, others(mask, 0)) is None
