"""What a person types, in this process."""

from collections.abc import Callable

import pytest


def called(
    capsys: pytest.CaptureFixture[str], main: Callable[[list[str]], None], *arguments: str
) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of one command."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out, told.err
