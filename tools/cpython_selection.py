"""Which of CPython's test modules every runner of them has in common, and what no runner but
CPython itself can do.

Patterns are those of `fnmatch`, over names like `test_dict.DictTest.test_copy`. A runner adds its
own to both.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

LANGUAGE = (
    *(
        "test_list",
        "test_tuple",
        "test_dict",
        "test_set",
        "test_generators",
        "test_yield_from",
        "test_iter",
    ),
    *(
        "test_with",
        "test_raise",
        "test_exceptions",
        "test_except_star",
        "test_scope",
        "test_class",
        "test_super",
    ),
    *(
        "test_funcattrs",
        "test_extcall",
        "test_keywordonlyarg",
        "test_positional_only_arg",
        "test_decorators",
    ),
    *(
        "test_unpack",
        "test_unpack_ex",
        "test_augassign",
        "test_compare",
        "test_contains",
        "test_fstring",
    ),
    *(
        "test_string_literals",
        "test_named_expressions",
        "test_patma",
        "test_listcomps",
        "test_dictcomps",
    ),
    *("test_setcomps", "test_genexps"),
)

FRAMES = "looks at frame objects: those of interpreted code are stand-ins"
TRACING = "sets a trace function, which sees native frames only"
DEPTH = "counts native recursion: an interpreted call takes no native frame"
LIFETIME = "expects an object to die at once: what was looked at lives a little longer"
MEMORY = "asks how the interpreter stores an object, or reuses its memory"
UNRAISABLE = "expects a report through sys.unraisablehook"

EXCLUDED: dict[str, str] = {
    "test_generators.FinalizationTest.test_frame_resurrect": FRAMES,
    "test_generators.GeneratorStackTraceTest.*": FRAMES,
    "test_yield_from.TestPEP380Operation.test_delegator_is_visible_to_debugger": FRAMES,
    "test_raise.TestTracebackType.test_attrs": FRAMES,
    "test_exceptions.ExceptionTests.testSettingException": FRAMES,
    "test_exceptions.PEP626Tests.*": TRACING,
    "test_patma.TestTracing.*": TRACING,
    "test_yield_from.TestPEP380Operation.test_broken_getattr_handling": UNRAISABLE,
    "test_iter.TestCase.test_ref_counting_behavior": LIFETIME,
    "test_exceptions.ExceptionTests.testExceptionCleanupState": LIFETIME,
    "test_exceptions.ExceptionTests.test*recursion*": DEPTH,
    "test_genexps.__test__.doctests": MEMORY,
}


def reason_for(name: str, table: Mapping[str, str]) -> str | None:
    """Why a method is left out, if it is."""
    return next((reason for pattern, reason in table.items() if fnmatchcase(name, pattern)), None)
