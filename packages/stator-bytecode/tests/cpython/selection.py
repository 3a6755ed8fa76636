"""Which of CPython's test modules run through the Machine, and what of them does not: data, with
reasons.

What is EXCLUDED is not run at all; what is SLOW runs in the slow tier. Most of it is said in
`cpython_selection`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import cpython_selection as common
from cpython_selection import DEPTH, FRAMES, LANGUAGE, LIFETIME, reason_for

MODULES = LANGUAGE

_TRACEBACK = "looks into a traceback: only the frame that raises has an entry, without columns"
_REFUSED = "makes type parameters, which are refused"

EXCLUDED: dict[str, str] = {
    **common.EXCLUDED,
    "test_generators.FinalizationTest.test_refcycle": LIFETIME,
    "test_generators.GeneratorCloseTest.test_close_releases_frame_locals": FRAMES,
    "test_generators.__test__.coroutine": _TRACEBACK,
    "test_*.test_exception_locations": _TRACEBACK,
    "test_with.NestedWith.testExceptionLocation": _TRACEBACK,
    "test_exceptions.ExceptionTests.testInfiniteRecursion": DEPTH,
    "test_exceptions.ExceptionTests.test_memory_error_cleanup": DEPTH,
    "test_exceptions.ExceptionTests.test_generator_close_cleanup_exc_state": LIFETIME,
    "test_exceptions.NameErrorTests.test_name_error_suggestions*": _TRACEBACK,
    "test_funcattrs.FunctionPropertiesTest.test___type_params__": _REFUSED,
}

SLOW = (
    "test_set.*.test_hash_effectiveness",
    "test_set.TestBinaryOpsMutating_*",
    "test_set.Test*OperationsMutating_*",
    "test_set.TestMethodsMutating_*",
    "test_dict.DictTest.test_popitem",
    "test_dict.DictTest.test_copy_fuzz",
    "test_dict.DictTest.test_track_dynamic",
    "test_tuple.TupleTest.test_bug7466",
    "test_fstring.TestCase.test_many_expressions",
    "test_string_literals.TestLiterals.test_eval_*_invalid_octal_escape",
    "test_generators.__test__.conjoin",
    "test_exceptions.ExceptionTests.test_memory_error_subclasses",
    "test_exceptions.ExceptionTests.test_generator_*_cleanup_exc_state",
    "test_*.test_track_*",
    "test_*.test_free_after_iterating",
    "test_string_literals.TestLiterals.test_eval_*_invalid_escape",
)


def excluded(name: str) -> str | None:
    """Why a method cannot hold through a Machine."""
    return reason_for(name, EXCLUDED)


def is_slow(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in SLOW)
