"""Run all faults: ``python -m tests.faults [--only PATTERN] [--out results/faults/faults.csv]``; see ``bench``."""

from __future__ import annotations

import argparse
from fnmatch import fnmatch
from pathlib import Path

from tests.faults.bench import kinds, rows, run_all, table


def main() -> int:
    """Go on where the CSV ends, print the table; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":")[0])
    parser.add_argument("--only", default="*", help="names of kinds, as a pattern: 'SIGKILL*'")
    parser.add_argument("--out", type=Path, default=Path("results/faults/faults.csv"))
    parser.add_argument("--table", action="store_true", help="print the table of what has been run and stop")
    parser.add_argument("--list", action="store_true", help="print the names of the kinds and stop")
    options = parser.parse_args()
    chosen = [kind for kind in kinds() if fnmatch(kind.name, options.only)]
    if options.list:
        print("\n".join(f"{kind.cases:6,}  {kind.name}" for kind in chosen))
        return 0
    if options.table:
        print(table(rows(options.out), chosen))
        return 0
    held = run_all(chosen, options.out)
    print("\n" + table(rows(options.out), chosen))
    return int(not held)


if __name__ == "__main__":
    raise SystemExit(main())
