"""Every probe of the suite, found by presence: probes/<family>/<name>.py that binds PROBE. There is no registry."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

from microbench.errors import InputError, UnknownProbe
from microbench.probe import Probe

HERE = Path(__file__).resolve().parent


def discover(*extra: Path) -> tuple[Probe, ...]:
    """The suite's probes, and those of `extra` folders laid out alike, sorted by family and name.

    Raises InputError where a probe's file does not load, or two probes share a name.
    """
    found: dict[str, Probe] = {}
    for root in (HERE, *extra):
        files = sorted(file for file in root.glob("*/*.py") if not file.name.startswith("_"))
        if not files and root != HERE:
            raise InputError(f"No probe lies under {root.name}/; a probe is <family>/<name>.py with a PROBE in it.")
        for file in files:
            probe = _load(file)
            if probe.name in found:
                raise InputError(f"Two probes are called {probe.name!r}; a stem names one probe.")
            found[probe.name] = probe
    return tuple(sorted(found.values(), key=lambda probe: (probe.family, probe.name)))


def load(name: str, *extra: Path) -> Probe:
    """The probe called `name` without the others, for a process that has no time for them. Raises UnknownProbe."""
    for root in (HERE, *extra):
        for file in root.glob(f"*/{name}.py"):
            return _load(file)
    return named(name, *extra)


def named(name: str, *extra: Path) -> Probe:
    """The probe called `name`. Raises UnknownProbe with the nearest names."""
    from difflib import get_close_matches

    probes = {probe.name: probe for probe in discover(*extra)}
    if name in probes:
        return probes[name]
    near = get_close_matches(name, probes)
    hint = f"did you mean {', '.join(near)}?" if near else "`smscope list` shows them."
    raise UnknownProbe(f"No probe is called {name!r}; {hint}")


@cache
def _load(file: Path) -> Probe:
    module = _module(file)
    probe = getattr(module, "PROBE", None)
    if not isinstance(probe, Probe):
        raise InputError(f"{file.parent.name}/{file.name} binds no PROBE; see CONTRIBUTING, 'a new probe'.")
    return probe.found_at(file)


def _module(file: Path) -> ModuleType:
    inside = file.is_relative_to(HERE)
    name = ".".join((__name__, *file.relative_to(HERE).with_suffix("").parts)) if inside else f"_probe_{file.stem}"
    if inside:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file.name} cannot be loaded as a Python file.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"{file.parent.name}/{file.name} does not load: {error!r}.") from error
    return module
