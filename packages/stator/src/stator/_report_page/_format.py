"""Numbers as people read them."""

from __future__ import annotations

_SPACE = "\N{NO-BREAK SPACE}"
_TIMES = ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (0.0, 1e6, "µs"))
_SIZES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def time_text(seconds: float | None) -> str:
    """Return a duration with three digits and its unit; a dash for one that was not measured."""
    if seconds is None:
        return "–"
    if not seconds:
        return f"0{_SPACE}s"
    factor, unit = next((factor, unit) for least, factor, unit in _TIMES if seconds >= least)
    value = seconds * factor
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f}{_SPACE}{unit}"


def memory_text(count: int) -> str:
    """Return a number of bytes with its unit."""
    for size, unit in _SIZES:
        if count >= size:
            return f"{count / size:.1f}{_SPACE}{unit}"
    return f"{count}{_SPACE}B"
