"""Values without a literal in source code."""

import math


def has_no_literal(value: object) -> bool:
    """Infinities, and ints that the interpreter may refuse to write down."""
    if type(value) is float:
        return not math.isfinite(value)
    return type(value) is int and value.bit_length() > _LONGEST


_LONGEST = 2000  # bits: fewer digits than the lowest limit that sys.set_int_max_str_digits takes
