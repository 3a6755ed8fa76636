"""Check that each feature has an owner: few files refer to it, in few packages.

``python tools/check_owners.py [ROOT]`` prints the files of each feature and fails where a feature
is in more than five, or in more than two packages.

A feature is what a program may use: warnings, hooks for gradients, random streams. A file is of a
feature if its code has one of the names that the packages give to it (``FEATURES``): names of
modules, classes, functions, fields and arguments, defined or used, but not words of comments and
texts. Names of torch and Python, such as ``torch.is_inference_mode_enabled`` and ``warnings.warn``,
are not meant: they state what happens, not how it is captured. Nor are hooks that existed before
the trace, hooks of classes, and those of backward passes that are captured (compiled autograd). Of
random streams, three things are not meant: operators that draw (``may_draw``), the slot for
operators that are given a generator (``WITH_GENERATOR``), and what keeps the process as it is while
a compiler or the oracle runs. What a package exports (``__init__``) and lists (``_registry``) is
not counted.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys
from collections.abc import Iterator

from package_source import Source, read_packages

_MAX_FILES = 5
_MAX_PACKAGES = 2
_LISTS = frozenset({"__init__", "_registry"})

FEATURES = {
    "hashes of the program": r"user_?hash",
    "hooks for gradients": r"GradientHook|gradient_hooks|pure_hook|HookCall"
    r"|hooks_in_graph|hook_outside|place_hook|pass(es)?(_backward)?_hooks|_module_hooks",
    "inference mode": r"InferenceMode|InferenceTracker|as_inference|^_inference(_mode|_views)?$"
    r"|(enter|exit)_inference",
    "random streams": r"(^|_)streams$|saved_stream|stream_?(states|order)|seeding|_torch_generators"
    r"|^(is_)?drawn$|drawn_(number|tensor|integer)|Drawn(Source|Tensor)|draws?_ahead|draws_numbers"
    r"|Random_?Steps|_numpy_random|^_random$",
    "warnings of the program": r"give_warning|GivenWarning|WarningCapture|CapturedWarning"
    r"|WarningReplay|with_warnings|^_warnings$|_warning_(capture|replay)",
}
"""The names of each feature, as a regular expression that ignores case."""


def names_of(source: Source) -> Iterator[str]:
    """Yield the names that a file defines or uses, and its own."""
    yield source.path.stem
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg or ""
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "").split(".")
        elif isinstance(node, ast.alias):
            yield node.name


def named_files(root: pathlib.Path) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield the package, the path and the names of each file that counts."""
    for package, sources in read_packages(root).items():
        for source in sources:
            if source.path.stem not in _LISTS:
                yield package, str(source.path), frozenset(names_of(source))


def main(root: pathlib.Path) -> int:
    """Print the files of each feature and return the exit status."""
    status = 0
    counted = [*named_files(root)]
    for feature, pattern in FEATURES.items():
        is_of_feature = re.compile(pattern, re.IGNORECASE).search
        found = [each for each in counted if any(map(is_of_feature, each[2]))]
        packages = {package for package, _, _ in found}
        print(f"{feature}: {len(found)} files in {len(packages)} packages")
        for _, path, _ in found:
            print(f"  {path}")
        if len(found) > _MAX_FILES or len(packages) > _MAX_PACKAGES:
            print(f"  allowed are {_MAX_FILES} files in {_MAX_PACKAGES} packages")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
