"""Whoever reads help() of a public name finds a docstring, on it and on its public methods."""

import inspect

import pytest

import attention
import microbench
from attention.integrations import transformers

PUBLIC = [
    *((package, name) for package in (attention, microbench) for name in package.__all__),
    (transformers, "register"),
]


@pytest.mark.parametrize(("package", "name"), PUBLIC, ids=lambda each: str(getattr(each, "__name__", each)))
def test_a_public_name_has_a_docstring(package: object, name: str) -> None:
    found = getattr(package, name)
    assert found.__doc__ and found.__doc__.strip()
    if inspect.isclass(found) and found.__module__.startswith(("attention", "microbench")):
        methods = (each for key, each in vars(found).items() if not key.startswith("_") and inspect.isfunction(each))
        assert [each.__name__ for each in methods if not each.__doc__] == []
