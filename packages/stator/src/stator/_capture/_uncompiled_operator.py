"""Operators that run as they are although the backend compiles: reported, warned of, or an error.

`options={"uncompiled": "warn" | "error" | "allow"}` decides which; the default is a warning.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from stator_backends import Lowered, Uncompiled

from stator._settings._deferred_warning import defer_warning
from stator._settings._options import Options
from stator.errors import SourceSpan, UncompiledWarning, Unsupported

UNCOMPILED = "uncompiled-operator"
"""The reason of the error where the program requires that everything is compiled."""
HINT = 'options={"uncompiled": "allow"} accepts it'


_WARNED: set[tuple[str, str]] = set()
"""The places, with reasons, that the process has been warned of."""


def check_compiled(
    name: str, lowered: Lowered | None, op_count: int, options: Options
) -> tuple[Uncompiled, ...]:
    """Return the operators that run uncompiled; warn of them once for each place in the program.

    Raises Unsupported where the options make them an error.
    """
    uncompiled = () if lowered is None else lowered.uncompiled
    policy = policy_of(options)
    if not uncompiled or policy == "allow":
        return uncompiled
    if policy == "error":
        first = uncompiled[0]
        detail = f"{len(uncompiled)} of {op_count} operators: {first.reason}"
        raise Unsupported("uncompiled-operator", detail, HINT, span_of(first))

    places = {(each.where, each.reason) for each in uncompiled}
    if places <= _WARNED:
        return uncompiled
    _WARNED.update(places)
    lines = [f"operators of {name} run uncompiled ({len(uncompiled)} of {op_count})"]
    lines += [f"  {line}" for line in lines_of_uncompiled(uncompiled)]
    lines.append(f"  try: {HINT}")
    defer_warning(UncompiledWarning("\n".join(lines)))
    return uncompiled


def forget_warned() -> None:
    """Warn of all places again."""
    _WARNED.clear()


def policy_of(options: Options) -> str:
    """Return the policy for operators that run uncompiled: warn, error or allow."""
    return options.uncompiled or "warn"


def lines_of_uncompiled(uncompiled: Sequence[Uncompiled]) -> Iterator[str]:
    """Yield, for each reason, how many operators run as they are, and where the program has
    them."""
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for each in uncompiled:
        by_reason[each.reason].append(each.where)
    for reason, places in by_reason.items():
        yield f"{_run(len(places))}: {reason}"
        counts = Counter(places)
        for place, count in counts.items():
            times = f" ({count} operators)" if count > 1 else ""
            if place:
                yield f"  {place}{times}"


def _run(count: int) -> str:
    return "1 runs as it is" if count == 1 else f"{count} run as they are"


_PLACE = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)')


def span_of(uncompiled: Uncompiled) -> SourceSpan:
    """Return the place of an operator in the program."""
    found = _PLACE.match(uncompiled.where)
    if found is None:
        return SourceSpan("<unknown>", "<unknown>", None)
    return SourceSpan(found["file"], found["function"], int(found["line"]))
