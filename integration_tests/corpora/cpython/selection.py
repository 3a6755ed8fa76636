"""Which of CPython's test modules run under `stator.compile`, and what of them is left out: data,
with reasons.

Most of it is said in `cpython_selection`, which the tests of the Machine share.
"""

from __future__ import annotations

import cpython_selection as common
from cpython_selection import LANGUAGE, LIFETIME, MEMORY, UNRAISABLE, reason_for

GROUPS = {
    "syntax": (
        *(
            "test_with",
            "test_raise",
            "test_augassign",
            "test_super",
            "test_keywordonlyarg",
            "test_positional_only_arg",
        ),
        *(
            "test_listcomps",
            "test_unpack",
            "test_unpack_ex",
            "test_extcall",
            "test_dictcomps",
            "test_setcomps",
        ),
        *(
            "test_decorators",
            "test_scope",
            "test_yield_from",
            "test_named_expressions",
            "test_except_star",
        ),
    ),
    "values": ("test_bool", "test_slice", "test_contains", "test_range", "test_int"),
    "numbers": (
        *("test_float", "test_complex", "test_enumerate"),
        *("test_compare", "test_math", "test_cmath", "test_operator"),
    ),
    "containers": (
        *(
            "test_tuple",
            "test_dict",
            "test_list",
            "test_iter",
            "test_userlist",
            "test_userdict",
            "test_bisect",
        ),
        *("test_sort", "test_defaultdict"),
    ),
    "sets": ("test_set",),
    "collections": ("test_collections", "test_ordered_dict", "test_deque"),
    "texts": ("test_unicode", "test_bytes", "test_fstring", "test_string_literals"),
    "functions": ("test_itertools", "test_functools", "test_contextlib", "test_context"),
    "draws": ("test_random", "test_heapq"),
    "objects": (
        *(
            "test_class",
            "test_property",
            "test_abc",
            "test_funcattrs",
            "test_patma",
            "test_exceptions",
        ),
        *("test_exception_group", "test_copy", "test_types"),
    ),
    "dataclasses": ("test_dataclasses",),
    "enums": ("test_enum",),
    "typing": ("test_typing",),
    "lifetimes": (
        "test_generators",
        "test_genexps",
        "test_weakref",
        "test_coroutines",
        "test_descr",
    ),
}
"""Run a process for each group: the modules of `cpython_selection.LANGUAGE`, and the library's."""

NIGHTLY = frozenset(GROUPS) - {"syntax", "values"}
"""Groups of the nightly tier; decision 27 has the reason."""

MODULES = (
    *LANGUAGE,
    *(name for group in GROUPS.values() for name in group if name not in LANGUAGE),
)

_ATOMS = (
    "depends on whether two equal strings or numbers are one object, which is up to the interpreter"
)
_BUILTINS = "replaces builtins that the tracer itself uses, or takes them away"
_COUNTS = "counts references, objects, collections or look-ups of the whole process, those of the tracer too"
_THREADS = "another thread changes a container between the check of it and its use"
_TIME = "compares how long two conversions take"
_WEAK = (
    "expects the collector to run at certain moments, or an object to die between two instructions"
)
_REBUILT = "compares the code of a generator that was carried over a break: it is made again"
_QUIRK = "a fault of CPython, expected to fail there: compiled, the method passes"

EXCLUDED: dict[str, str] = {
    **common.EXCLUDED,
    "test_raise.TestContext.test_3611": UNRAISABLE,
    "test_*.test_free_after_iterating": LIFETIME,
    "test_*.test_weakref": LIFETIME,
    "test_functools.*.test_lru_cache_weakrefable": LIFETIME,
    "test_ordered_dict.*.test_reference_loop": LIFETIME,
    "test_exceptions.ExceptionTests.test_3114": LIFETIME,
    "test_scope.ScopeTests.testLeaks": LIFETIME,
    "test_class.ClassTests.testDel": LIFETIME,
    "test_dict.DictTest.test_oob_indexing_dictiter_iternextitem": LIFETIME,
    "test_int.IntStr*Tests.test_denial_of_service_*": _TIME,
    "test_weakref.ReferencesTestCase.test_callback*": _WEAK,
    "test_weakref.MappingTestCase.test_weak_keyed_len_cycles": _WEAK,
    "test_weakref.MappingTestCase.test_weak_keyed_union_operators": _WEAK,
    "test_weakref.MappingTestCase.test_threaded_*": _THREADS,
    "test_*_tuple_reuse": MEMORY,
    "test_dict.DictTest.test_splittable_popitem": MEMORY,
    "test_descr.SharedKeyTests.test_subclasses": MEMORY,
    "test_functools.TestPartialC.test_nested_optimization": MEMORY,
    "test_coroutines.CoroutineTest.test_for_[0-9]*": _COUNTS,
    "test_generators.GeneratorTest.test_handle_frame_object_in_creation": _COUNTS,
    "test_descr.ClassPropertiesAndMethods.test_slots": _COUNTS,
    "test_functools.TestSingleDispatch.test_cache_invalidation": _COUNTS,
    "test_descr.ClassPropertiesAndMethods.test_restored_object_new": _QUIRK,
    "test_generators.__test__.syntax": _REBUILT,
    "test_class.ClassTests.testSetattrWrapperNameIntern": _ATOMS,
    "test_dict.DictTest.test_str_nonstr": _ATOMS,
    "test_operator.*OperatorTestCase.test_is": _ATOMS,
    "test_operator.*OperatorTestCase.test_is_not": _ATOMS,
    "test_unicode.UnicodeTest.test_getnewargs": _ATOMS,
    "test_*.test_repeat_id_preserving": _ATOMS,
    "test_iter.TestCase.test_reduce_mutating_builtins_iter": _BUILTINS,
    "test_functools.*.test_lru_reentrancy_with_len": _BUILTINS,
    "test_ordered_dict.PurePython*.test_pickle_recursive": _BUILTINS,
}


def excluded(name: str) -> str | None:
    """Return the reason for which a method is left out, or None."""
    return reason_for(name, EXCLUDED)
