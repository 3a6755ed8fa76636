"""Writes docs/reference/cpython_tests.md: how CPython's own test methods end through the Machine,
for each Python given.

python report.py --write PYTHON [PYTHON ...]   runs every method under each, writes the page
python report.py --record                      runs them under this one, prints the counts as JSON
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "tools"))
from methods import interpreted, methods, natively  # noqa: E402
from selection import EXCLUDED, MODULES, excluded, is_slow  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "cpython_tests.md"
HEAD = """\
# CPython's own tests, through the Machine

Each method of these modules runs twice: natively, and interpreted by `Machine` over `ConcreteDomain`, with every frame
checked before each instruction. It agrees when both end the same way (passed, skipped, or the same failure). Written by
`packages/stator-bytecode/tests/cpython/report.py`; `test_cpython.py` beside it runs the same methods.

"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--fast", action="store_true", help="leave out the slow methods")
    parser.add_argument("--write", nargs="+", metavar="PYTHON")
    options = parser.parse_args()
    if options.record:
        print(json.dumps(record(options.fast)))
    elif options.write:
        records = [_run(python, options.fast) for python in options.write]
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(records))


def record(fast: bool) -> dict[str, Any]:
    modules = {}
    for module in MODULES:
        counts: collections.Counter[str] = collections.Counter()
        for name, case in methods(module).items():
            if excluded(name) is not None:
                counts["excluded"] += 1
            elif not (fast and is_slow(name)):
                counts["agrees" if interpreted(case) == natively(case) else "differs"] += 1
        modules[module] = counts
    return {"version": sys.version.split()[0], "modules": modules}


def _run(python: str, fast: bool) -> dict[str, Any]:
    command = [python, __file__, "--record", *(["--fast"] if fast else [])]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return found


def page(records: list[dict[str, Any]]) -> str:
    titles = " | ".join(f"CPython {found['version']}" for found in records)
    lines = [f"| module | {titles} |", "|---|" + "---|" * len(records)]
    lines += [
        f"| `{module}` | " + " | ".join(_cell(found["modules"][module]) for found in records) + " |"
        for module in MODULES
    ]
    totals = [
        sum(
            (collections.Counter(counts) for counts in found["modules"].values()),
            collections.Counter(),
        )
        for found in records
    ]
    lines.append("| **all** | " + " | ".join(f"**{_cell(total)}**" for total in totals) + " |")
    reasons = [f"- `{pattern}`: {reason}" for pattern, reason in EXCLUDED.items()]
    left_out = ["", "## Left out", "", "These cannot hold through a Machine:", "", *reasons, ""]
    return HEAD + "\n".join([*lines, *left_out])


def _cell(counts: dict[str, int]) -> str:
    agrees, differs, left_out = (counts.get(kind, 0) for kind in ("agrees", "differs", "excluded"))
    text = f"{agrees} of {agrees + differs} agree"
    return f"{text}, {left_out} left out" if left_out else text


if __name__ == "__main__":
    main()
