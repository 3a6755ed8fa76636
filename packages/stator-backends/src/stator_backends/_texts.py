"""fx keeps the text of every module that it generates, for good: of those that a backend makes on its way too."""

import linecache
import weakref
from collections.abc import Iterable
from typing import Any

from torch.fx.graph_module import _loader


def generated_texts() -> set[str]:
    """The names of all texts that there are now."""
    return set(_loader.eval_cache)


def forget_texts_with(compiled: Any, names: Iterable[str]) -> None:
    """Drop these texts when `compiled` dies: until then a traceback can show their lines."""
    owner = getattr(compiled, "__self__", compiled)  # a bound method is made anew each time
    try:
        weakref.finalize(owner, _forget, tuple(names)).atexit = False
    except TypeError:  # nobody can tell when it dies
        return


def _forget(names: tuple[str, ...]) -> None:
    for name in names:
        _loader.eval_cache.pop(name, None)
        linecache.cache.pop(name, None)
