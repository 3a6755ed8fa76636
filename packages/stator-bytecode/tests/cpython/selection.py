"""Which of CPython's test modules run through the Machine, and what of them does not: data, with reasons.

Patterns are those of `fnmatch`, over names like `test_dict.DictTest.test_copy`. What is EXCLUDED is not run at all;
what is SLOW runs in the slow tier.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

MODULES = (
    *("test_list", "test_tuple", "test_dict", "test_set", "test_generators", "test_yield_from", "test_iter"),
    *("test_with", "test_raise", "test_exceptions", "test_except_star", "test_scope", "test_class", "test_super"),
    *("test_funcattrs", "test_extcall", "test_keywordonlyarg", "test_positional_only_arg", "test_decorators"),
    *("test_unpack", "test_unpack_ex", "test_augassign", "test_compare", "test_contains", "test_fstring"),
    *("test_string_literals", "test_named_expressions", "test_patma", "test_listcomps", "test_dictcomps"),
    *("test_setcomps", "test_genexps"),
)

_FRAMES = "looks at frame objects: those that run are the Machine's"
_TRACEBACK = "looks into a traceback: only the frame that raises has an entry, without columns"
_TRACING = "sets a trace function, which sees native frames only"
_DEPTH = "counts native recursion: an interpreted call takes no native frame"
_LIFETIME = "expects an object to die at once: the Machine still holds what the last instruction looked at"
_IDENTITY = "expects that the interpreter reuses the memory of a tuple"
_UNRAISABLE = "expects a report through sys.unraisablehook"
_REFUSED = "makes type parameters, which are refused"
_IN_C = "tests an exception made in C, whose traceback the C code sets"

EXCLUDED: dict[str, str] = {
    "test_generators.FinalizationTest.test_frame_resurrect": _FRAMES,
    "test_generators.GeneratorStackTraceTest.*": _FRAMES,
    "test_generators.FinalizationTest.test_refcycle": _LIFETIME,
    "test_generators.GeneratorCloseTest.test_close_releases_frame_locals": _FRAMES,
    "test_generators.__test__.coroutine": _TRACEBACK,
    "test_yield_from.TestPEP380Operation.test_delegator_is_visible_to_debugger": _FRAMES,
    "test_yield_from.TestPEP380Operation.test_broken_getattr_handling": _UNRAISABLE,
    "test_iter.TestCase.test_ref_counting_behavior": _LIFETIME,
    "test_raise.TestTracebackType.test_attrs": _TRACEBACK,
    "test_*.test_exception_locations": _TRACEBACK,
    "test_with.NestedWith.testExceptionLocation": _TRACEBACK,
    "test_exceptions.ExceptionTests.test*recursion*": _DEPTH,
    "test_exceptions.ExceptionTests.testInfiniteRecursion": _DEPTH,
    "test_exceptions.ExceptionTests.test_memory_error_cleanup": _DEPTH,
    "test_exceptions.ExceptionTests.testSettingException": _IN_C,
    "test_exceptions.ExceptionTests.testExceptionCleanupState": _LIFETIME,
    "test_exceptions.ExceptionTests.test_generator_close_cleanup_exc_state": _LIFETIME,
    "test_exceptions.PEP626Tests.*": _TRACEBACK,
    "test_exceptions.NameErrorTests.test_name_error_suggestions*": _TRACEBACK,
    "test_funcattrs.FunctionPropertiesTest.test___type_params__": _REFUSED,
    "test_patma.TestTracing.*": _TRACING,
    "test_genexps.__test__.doctests": _IDENTITY,
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
    return next((reason for pattern, reason in EXCLUDED.items() if fnmatchcase(name, pattern)), None)


def is_slow(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in SLOW)
