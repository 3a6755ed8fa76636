"""Limits that a package does not keep yet: what it has today is recorded, and may only go down.

A rule measures each package and has one limit for all of them. ``tools/ratchets.toml`` has a table
for each rule, with the value of each package that is over the limit. More than the recorded value
is a fault. Less is a fault as well, so that the record follows at once: ``python
tools/check_names.py --update`` and ``check_size.py --update`` lower it, and never raise it.

    [long functions]
    stator-variables = 32        # 33: too many; 31: record it
"""

from __future__ import annotations

import pathlib
import tomllib
from collections.abc import Mapping, Sequence

import attrs

_FILE = pathlib.PurePath("tools", "ratchets.toml")
_HEAD = """\
# Values of the packages that do not keep a limit yet: see tools/ratchet.py. They may only go down.
# `python tools/check_names.py --update` and `python tools/check_size.py --update` lower them.
"""

Recorded = dict[str, dict[str, int]]


@attrs.frozen
class Measure:
    """What one rule found in one package; ``places`` are the lines to look at."""

    rule: str
    package: str
    value: int
    limit: int = 0
    places: tuple[str, ...] = ()


def read(root: pathlib.Path) -> Recorded:
    """Return the recorded values by rule and package; none where nothing was recorded yet."""
    path = root / _FILE
    return tomllib.loads(path.read_text()) if path.exists() else {}


def faults(measures: Sequence[Measure], recorded: Recorded) -> list[str]:
    """Return a text for each value above its limit and record, and for each record above its
    value."""
    found = []
    for measure in measures:
        record = recorded.get(measure.rule, {}).get(measure.package, measure.limit)
        subject = f"{measure.package}: {measure.rule}: {measure.value}"
        if measure.value > max(record, measure.limit):
            lines = [f"{subject}, allowed are {max(record, measure.limit)}"]
            found.append("\n  ".join([*lines, *measure.places]))
        elif measure.value < record and record > measure.limit:
            found.append(f"{subject}, recorded are {record}: lower the record with --update")
    return found


def lowered(measures: Sequence[Measure], recorded: Recorded) -> Recorded:
    """Return the record with the values that went down, and without those that keep the limit."""
    result = {rule: dict(values) for rule, values in recorded.items()}
    for measure in measures:
        of_rule = result.get(measure.rule, {})
        record = of_rule.pop(measure.package, None)
        if record is not None and measure.value > measure.limit:
            of_rule[measure.package] = min(record, measure.value)
    return result


def write(root: pathlib.Path, recorded: Mapping[str, Mapping[str, int]]) -> None:
    """Write the record, in the order of rules and packages."""
    tables = []
    for rule in sorted(recorded):
        rows = [f"{package} = {value}" for package, value in sorted(recorded[rule].items())]
        if rows:
            tables.append("\n".join([f'["{rule}"]', *rows]))
    (root / _FILE).write_text("\n".join([_HEAD, "\n\n".join(tables), ""]))


def run(root: pathlib.Path, measures: Sequence[Measure], update: bool) -> int:
    """Compare with the record, or lower it; print the faults and return the exit status."""
    recorded = read(root)
    if update:
        recorded = lowered(measures, recorded)
        write(root, recorded)

    found = faults(measures, recorded)
    for fault in found:
        print(fault)
    return int(bool(found))
