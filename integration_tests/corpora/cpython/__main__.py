"""Run CPython's own test methods natively and compiled, one process each, and report differences.

python -m integration_tests.corpora.cpython MODULE [MODULE ...]
                                            [--out FOLDER] [--only PATTERN] [--limit SECONDS]
python -m integration_tests.corpora.cpython --page FOLDER
    writes docs/reference/cpython_tests_compiled.md from such records
"""

from __future__ import annotations

import argparse
import json
import pathlib
from fnmatch import fnmatchcase

import attrs
from cpython_methods import Method, methods

from integration_tests.corpora.cpython.compiled import compiled, natively
from integration_tests.corpora.cpython.record import PAGE, Record, page
from integration_tests.corpora.cpython.selection import excluded
from integration_tests.support.warming import warm_up


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(options.page))
        return
    warm_up()
    for module in options.modules:
        chosen = {
            name: case for name, case in methods(module).items() if fnmatchcase(name, options.only)
        }
        records = [_recorded(name, case, options.limit) for name, case in chosen.items()]
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{module}.json").write_text(
                json.dumps([attrs.asdict(record) for record in records])
            )


def _recorded(name: str, case: Method, limit: int) -> Record:
    reason = excluded(name)
    if reason is not None:
        return Record(name, left_out=reason)
    plain, ours = natively(case, limit), compiled(case, limit)
    record = Record(
        name, plain.ending, ours.ending, ours.breaks, ours.crashes, seconds=ours.seconds
    )
    if record.kind != "passes":
        print(f"{record.kind}: {record.said()} ({ours.seconds:.1f} s)", flush=True)
    return record


if __name__ == "__main__":
    main()
