"""Run every case on the GPU and in the emulator, and write what came of it.

`python -m microbench.verify.differential` and one of

    build                          every cubin into the cache; needs NVRTC, no GPU
    emulate FILE.npz               the emulator's results, for a GPU machine without g++
    run REPORT.jsonl [FILE.npz]    both halves, and a row of each case; exit status 1 where one differs or failed
    diagnose                       small tensor copies, each in a process of its own

FILE.npz keeps digests of results that must be equal, and a fixed sample of each chunk of seeds.
"""

import sys
from pathlib import Path

from microbench.files import text
from microbench.verify.differential import compare, emulated, trials


def main(verb: str, *names: str) -> int:
    """The command line; 1 where something differs or failed."""
    if verb == "build":
        sys.stdout.write(f"{compare.build() + trials.build()} cubins\n")
        return 0
    if verb == "emulate":
        emulated.save(Path(names[0]))
        return 0
    if verb == "diagnose":
        return trials.diagnose()
    rows = compare.compare(Path(names[1]) if len(names) > 1 else None)
    Path(names[0]).write_text(text(rows), encoding="utf-8")
    bad = [row for row in rows if row.verdict != "agrees"]
    for row in bad:
        found = row.reason or f"{row.differing} differ, worst {row.worst_error}"
        sys.stdout.write(f"{row.wrapper} {row.layout} {row.values}: {found}\n")
    sys.stdout.write(f"{len(rows) - len(bad)} of {len(rows)} cases agree\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
