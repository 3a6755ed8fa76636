"""Which of CPython's test modules run under `stator.compile`, and what of them is left out: data, with reasons.

Patterns are those of `fnmatch`, over names like `test_dict.DictTest.test_copy`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

SAMPLE = (
    *("test_bool", "test_list", "test_with", "test_raise", "test_augassign", "test_compare", "test_contains"),
    *("test_super", "test_keywordonlyarg", "test_positional_only_arg", "test_listcomps", "test_unpack"),
    *("test_unpack_ex", "test_extcall", "test_dictcomps", "test_setcomps", "test_decorators", "test_class"),
    *("test_scope", "test_property", "test_abc", "test_userlist", "test_bisect"),
)
"""Run in the default sessions; the others in the slow tier."""

MODULES = (
    *SAMPLE,
    *("test_iter", "test_named_expressions", "test_yield_from"),
    *("test_tuple", "test_dict", "test_set", "test_generators", "test_exceptions", "test_funcattrs"),
    *(
        "test_fstring",
        "test_patma",
        "test_string_literals",
        "test_genexps",
        "test_int",
        "test_float",
        "test_complex",
        "test_unicode",
    ),
    *("test_bytes", "test_range", "test_slice", "test_enumerate", "test_sort", "test_itertools", "test_functools"),
    *("test_operator", "test_collections", "test_ordered_dict", "test_defaultdict", "test_deque", "test_userdict"),
    *("test_dataclasses", "test_enum", "test_contextlib", "test_copy", "test_math", "test_cmath"),
    *("test_random", "test_heapq", "test_types", "test_typing", "test_weakref", "test_descr"),
    *("test_coroutines", "test_except_star", "test_exception_group", "test_context"),
)

_FRAMES = "looks at frame objects: those of traced code are stand-ins"
_TRACING = "sets a trace function, which sees native frames only"
_LIFETIME = "expects an object to die at once: what a trace has looked at lives until its effects are written"
_MEMORY = "asks how the interpreter stores an object, or reuses its memory"
_ATOMS = "asks whether two equal strings or numbers are one object, which is up to the interpreter"
_UNRAISABLE = "expects a report through sys.unraisablehook"
_BUILTINS = "takes builtins away that the tracer itself uses"
_DEPTH = "counts native recursion: an interpreted call takes no native frame"

EXCLUDED: dict[str, str] = {
    "test_generators.FinalizationTest.test_frame_resurrect": _FRAMES,
    "test_generators.GeneratorStackTraceTest.*": _FRAMES,
    "test_yield_from.TestPEP380Operation.test_delegator_is_visible_to_debugger": _FRAMES,
    "test_raise.TestTracebackType.test_attrs": _FRAMES,
    "test_exceptions.ExceptionTests.testSettingException": _FRAMES,
    "test_exceptions.PEP626Tests.*": _TRACING,
    "test_patma.TestTracing.*": _TRACING,
    "test_yield_from.TestPEP380Operation.test_broken_getattr_handling": _UNRAISABLE,
    "test_raise.TestContext.test_3611": _UNRAISABLE,
    "test_iter.TestCase.test_ref_counting_behavior": _LIFETIME,
    "test_*.test_free_after_iterating": _LIFETIME,
    "test_*.test_weakref": _LIFETIME,
    "test_functools.*.test_lru_cache_weakrefable": _LIFETIME,
    "test_exceptions.ExceptionTests.testExceptionCleanupState": _LIFETIME,
    "test_exceptions.ExceptionTests.test_3114": _LIFETIME,
    "test_scope.ScopeTests.testLeaks": _LIFETIME,
    "test_class.ClassTests.testDel": _LIFETIME,
    "test_class.ClassTests.testSetattrWrapperNameIntern": _ATOMS,
    "test_dict.DictTest.test_oob_indexing_dictiter_iternextitem": _LIFETIME,
    "test_*_tuple_reuse": _MEMORY,
    "test_enumerate.*.test_tuple_reuse": _MEMORY,
    "test_dict.DictTest.test_splittable_popitem": _MEMORY,
    "test_genexps.__test__.doctests": _MEMORY,
    "test_dict.DictTest.test_str_nonstr": _ATOMS,
    "test_operator.*OperatorTestCase.test_is": _ATOMS,
    "test_operator.*OperatorTestCase.test_is_not": _ATOMS,
    "test_iter.TestCase.test_reduce_mutating_builtins_iter": _BUILTINS,
    "test_exceptions.ExceptionTests.test*recursion*": _DEPTH,
}


def excluded(name: str) -> str | None:
    """Why a method is left out."""
    return next((reason for pattern, reason in EXCLUDED.items() if fnmatchcase(name, pattern)), None)
