"""A prediction makes its terms when somebody reads them, and is as any other then."""

import pickle
from dataclasses import replace

import pytest

from attention.choose.prediction import Account, Efficiency, Prediction, Term

TERM = Term("products", "tile", 2.0, "flops", 1.0)


def test_an_account_is_asked_once_and_when_it_is_read() -> None:
    asked: list[int] = []

    def account() -> Account:
        asked.append(1)
        return TERM.term, (TERM,)

    found = Prediction.accounted(2.0, account, None, Efficiency(), 3.0)
    assert (found.seconds, found.unhidden_seconds, asked) == (2.0, 3.0, [])
    whole = Prediction(2.0, "products", (TERM,), None, Efficiency(), 3.0)
    assert found == whole and hash(found) == hash(whole) and repr(found) == repr(whole)
    assert found.terms == (TERM,) and found.bound_by == "products" and len(asked) == 1
    with pytest.raises(AttributeError, match="links"):
        found.links  # type: ignore[attr-defined]  # noqa: B018


def test_an_account_travels_as_what_it_says() -> None:
    found = Prediction.accounted(2.0, lambda: ("products", (TERM,)), None, Efficiency(), 3.0)
    assert pickle.loads(pickle.dumps(found)) == found
    assert replace(found, seconds=1.0).terms == (TERM,)
