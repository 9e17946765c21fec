"""The exceptions of microbench. Every message says what happened, on which GPU, and what to do.

SmscopeError
├── InputError          a name, shape or option that does not exist (exit code 2)
│   ├── UnknownGpu
│   ├── UnknownProbe
│   └── UnknownArch
├── DataError           a file of data/ that cannot be read or written
├── EnvironmentLacks    a package or tool that this machine does not have
├── BusyError           another run holds this device
├── BuildError          NVRTC refused the source, or its log holds a fatal note
├── ContractError       the SASS is not what the probe says it timed
├── BoundError          a value that physics does not allow
├── MeasureError        a sample too short or too odd to be believed
└── DeviceError         a launch failed, or the context is broken
"""


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
