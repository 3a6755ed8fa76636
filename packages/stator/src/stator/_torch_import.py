"""The import of `torch._dynamo` by the program, or by a compiler that it uses: what stator follows
there exists from then on.

`torch.compiler.set_stance` imports it only when it is called, so a compiled function may have
entries by then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import attrs

MODULE = "torch._dynamo"


def when_imported(follow: Callable[[], None]) -> None:
    """Call `follow` if `torch._dynamo` has been imported, else right after its import."""
    if MODULE in sys.modules:
        follow()
    elif not any(type(finder) is _Finder for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(follow))


@attrs.frozen(eq=False)
class _Finder(MetaPathFinder):
    """An observer of the import, at which it is removed."""

    follow: Callable[[], None]

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != MODULE:
            return None

        sys.meta_path.remove(self)
        spec = find_spec(name)
        loader: Any = spec.loader if spec else None
        execute = loader.exec_module

        def execute_and_follow(module: ModuleType) -> None:
            execute(module)
            self.follow()

        loader.exec_module = execute_and_follow
        return spec
