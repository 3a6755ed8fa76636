"""Operators that run as they are although the backend compiles: reported, warned of, or an error.

`options={"uncompiled": "warn" | "error" | "allow"}` decides which; by default they are an error
under `fullgraph`, and a warning else.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from stator_backends import Lowered, Uncompiled

from stator._settings._deferred_warning import defer_warning
from stator._settings._options import Options
from stator.errors import SourceSpan, UncompiledWarning, Unsupported

HINT = 'options={"uncompiled": "allow"} accepts it'
ERROR_HINT = (
    'options={"uncompiled": "warn"} runs these operators as they are, and compiles the rest'
)


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
        raise _error(uncompiled, op_count)

    places = {(each.where, each.reason) for each in uncompiled}
    if places <= _WARNED:
        return uncompiled
    _WARNED.update(places)
    lines = [f"operators of {name} run uncompiled ({len(uncompiled)} of {op_count})"]
    lines += [f"  {line}" for line in lines_of_uncompiled(uncompiled)]
    lines.append(f"  try: {HINT}")
    defer_warning(UncompiledWarning("\n".join(lines)))
    return uncompiled


def _error(uncompiled: Sequence[Uncompiled], op_count: int) -> Unsupported:
    """Return the error that names each operator, its line and the reason."""
    head = f"a compiled graph: {len(uncompiled)} of {op_count} operators would run uncompiled"
    lines = [head, *(f"  {line}" for line in lines_of_uncompiled(uncompiled))]
    return Unsupported("uncompiled-operator", "\n".join(lines), ERROR_HINT, span_of(uncompiled[0]))


def requires_compilation(error: Unsupported) -> bool:
    """Return True for the error of a program that requires that everything is compiled."""
    return error.reason == "uncompiled-operator"


def forget_warned() -> None:
    """Warn of all places again."""
    _WARNED.clear()


def policy_of(options: Options) -> str:
    """Return the policy for operators that run uncompiled: warn, error or allow."""
    if options.uncompiled is not None:
        return options.uncompiled
    return "error" if options.fullgraph else "warn"


def lines_of_uncompiled(uncompiled: Sequence[Uncompiled]) -> Iterator[str]:
    """Yield, for each reason, how many operators run as they are, and for each line of the program
    which."""
    by_reason: defaultdict[str, list[Uncompiled]] = defaultdict(list)
    for each in uncompiled:
        by_reason[each.reason].append(each)
    for reason, operators in by_reason.items():
        yield f"{_run(len(operators))}: {reason}"
        by_place: defaultdict[str, list[str]] = defaultdict(list)
        for each in operators:
            by_place[each.where].append(_operator(each.node))
        for place, names in by_place.items():
            yield f"  {place or 'in no line of the program'}: {', '.join(_counted(names))}"


def _run(count: int) -> str:
    return "1 runs as it is" if count == 1 else f"{count} run as they are"


def _operator(node: str) -> str:
    """Return the name of an operator: that of its node without the number that keeps equal ones
    apart."""
    return re.sub(r"_\d+$", "", node)


def _counted(names: Sequence[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        yield name if count == 1 else f"{name} ({count} times)"


_PLACE = re.compile(r'File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)')


def span_of(uncompiled: Uncompiled) -> SourceSpan:
    """Return the place of an operator in the program."""
    found = _PLACE.match(uncompiled.where)
    if found is None:
        return SourceSpan("<unknown>", "<unknown>", None)
    return SourceSpan(found["file"], found["function"], int(found["line"]))
