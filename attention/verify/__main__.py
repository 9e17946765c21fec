"""The worker of a campaign, which `smscope verify` starts: some of its random problems, a row each in ROWS.jsonl.

A problem is drawn from the seed and its number alone: with --only and the options of the run that failed, this runs one
again.
"""

import argparse
import sys
from pathlib import Path

from attention.verify.builds import ARCH
from attention.verify.campaign import Campaign
from attention.verify.problems import Case
from microbench.errors import SmscopeError
from microbench.machine.arch import by_name


def main(arguments: list[str] | None = None) -> int:
    """Run the problems; the exit status. A failure of ours is one sentence on stderr."""
    given = parser().parse_args(arguments)
    try:
        from attention.verify import worker

        return worker.work(cases_of(given), given.out, given.exact, given.device)
    except SmscopeError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def campaign_of(given: argparse.Namespace) -> Campaign:
    """The campaign of a command line."""
    names = ("variants", "problems", "seed", "arch", "device", "checked", "exact")
    return Campaign(**{name: getattr(given, name) for name in names})


def cases_of(given: argparse.Namespace) -> list[Case]:
    """This worker's part of it; with --only that one problem alone."""
    cases = campaign_of(given).cases()
    return cases[given.first : given.last] if given.only is None else [cases[given.only]]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m attention.verify", description=(__doc__ or "").splitlines()[0])
    made.add_argument("out", type=Path, metavar="ROWS.jsonl")
    made.add_argument("--variants", type=lambda names: tuple(names.split(",")), required=True)
    made.add_argument("--arch", type=lambda name: by_name(name).name, default=ARCH, help="of the GPU")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--device", type=int, default=0, help="the GPU's number")
    made.add_argument("--problems", type=int, default=Campaign.problems)
    made.add_argument("--only", type=int, help="the number of one problem")
    made.add_argument("--checked", action="store_true", help="the problems of the sanitizer")
    made.add_argument("--exact", action="store_true", help="no poisoned room around tensors, judged by the CPU")
    made.add_argument("--first", type=int, default=0)
    made.add_argument("--last", type=int)
    return made


if __name__ == "__main__":
    sys.exit(main())
