"""The exceptions of microbench. Every message says what happened, on which GPU, and what to do.

A command that ends with one of them has its exit code, and this is where codes are said, for every command:

    0    done, and nothing was wrong
    1    it could not be done, nothing was measured, or what was found is wrong, slower or off
    2    it was not begun: a name or option that does not exist, or no GPU where one is needed
    130  Ctrl-C

SmscopeError
├── InputError          a name, shape or option that does not exist (exit code 2)
│   ├── UnknownGpu
│   ├── UnknownProbe
│   └── UnknownArch
├── DataError           a file of data/ that cannot be read or written
├── EnvironmentLacks    a package or tool that this machine does not have
│   └── NoGpu           no GPU, or none that torch can use (exit code 2)
├── BusyError           another run holds this device
├── BuildError          NVRTC refused the source, or its log holds a fatal note
├── ContractError       the SASS is not what the probe says it timed
├── BoundError          a value that physics does not allow
├── MeasureError        a sample too short or too odd to be believed
└── DeviceError         a launch failed, or the context is broken

DataWarning             (a UserWarning) a line, field or file of data/ that is left out; the rest counts
"""

import re
import traceback
from pathlib import Path

LONGEST_REASON = 600
_FOLDERS = re.compile(r"(?<![\w.])(?:/[\w.@+-]+)+/")


class SmscopeError(Exception):
    """Root of the tree: catch this to catch everything smscope raises on purpose."""

    exit_code = 1  # of a command that ends with it


class InputError(SmscopeError):
    """A name, shape or option that does not exist."""

    exit_code = 2


class UnknownGpu(InputError):
    """No profile or run carries this GPU's name."""


class UnknownProbe(InputError):
    """No probe file has this stem."""


class UnknownArch(InputError):
    """The table in arch.py has no such architecture."""


class DataError(SmscopeError):
    """A file of data/ that cannot be read or written."""


class EnvironmentLacks(SmscopeError):
    """A package or tool that this machine does not have."""


class NoGpu(EnvironmentLacks):
    """No GPU where one is needed, or none that torch can use.

    Not 1, which says of most commands that they looked, and that what they found is wrong.
    """

    exit_code = 2


class BusyError(SmscopeError):
    """Another run holds this device."""


class BuildError(SmscopeError):
    """NVRTC refused the source, or its log holds a fatal note."""


class ContractError(SmscopeError):
    """The SASS between the clock reads is not what the probe declares."""


class BoundError(SmscopeError):
    """A value that physics does not allow."""


class MeasureError(SmscopeError):
    """A sample too short or too odd to be believed; the device itself is well."""


class DeviceError(SmscopeError):
    """A launch failed, or the context is broken."""


class DataWarning(UserWarning):
    """A line, field or file of data/ that is left out; the message names it, and the rest counts."""


def sentence(error: BaseException, within: Path | None = None) -> str:
    """An exception on one line, with its class where we did not raise it; folders are cut off file names.

    Where `within` is given, an exception that is not ours ends with the last line of that file that it went through.
    Records travel: a reason must not carry the names of a machine's folders or users. A ContractError keeps its diff.
    """
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    ours = isinstance(error, SmscopeError)
    text = "; ".join(lines) if ours else ": ".join([type(error).__name__, *lines[:1]])
    text = _FOLDERS.sub("", text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "...")
    return text if ours or within is None else text + _where(error, within)


def _where(error: BaseException, file: Path) -> str:
    """' (copy.py:12)': the innermost frame in `file`; nothing where the exception never passed through it."""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if _same(frame.f_code.co_filename, file)]
    return f" ({file.name}:{lines[-1]})" if lines else ""


def _same(name: str, file: Path) -> bool:
    return Path(name).name == file.name and Path(name).resolve() == file.resolve()
