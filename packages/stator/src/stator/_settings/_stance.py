"""The stance: what compiled objects of the whole process do with their entries.

A wrapper runs the entry used last without looking at the stance, so setting one takes the entries
out of all wrappers. While it is not the default, every call goes through its region, which follows
it. So `torch.compiler.set_stance` is made to take them out, too.
"""

import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import attrs

from stator.errors import InvalidOption, InvalidUse

F = TypeVar("F", bound=Callable[..., Any])
STANCES = (
    *("default", "force_eager", "eager_on_recompile", "fail_on_recompile"),
    *("eager_then_compile", "aot_eager_then_compile"),
)


@attrs.frozen
class Stance:
    """A stance by its name in torch; `backend` is used in place of every other one."""

    name: str = "default"
    backend: str | Callable[..., Any] | None = None


DEFAULT_STANCE = Stance()


REGIONS: weakref.WeakSet[Any] = weakref.WeakSet()
"""All compiled objects."""
_keepers: list[list[object]] = []


def add_region(region: object) -> None:
    """Note a compiled object; it exists as long as the program has it, or a block that keeps it."""
    REGIONS.add(region)
    for kept in _keepers:
        kept.append(region)


@contextmanager
def kept_regions() -> Iterator[None]:
    """Keep what is compiled in a block until its end: objects in the locals of a function that has
    returned are to be in the report."""
    kept: list[object] = []
    _keepers.append(kept)
    try:
        yield
    finally:
        _keepers[:] = [each for each in _keepers if each is not kept]


_set: list[Stance] = [DEFAULT_STANCE]


def stance() -> Stance:
    """Return the stance that is set here, else the one set by torch."""
    if _set[0] is not DEFAULT_STANCE:
        return _set[0]
    found = getattr(sys.modules.get("torch._dynamo.eval_frame"), "_stance", None)
    if found is None or (found.stance == "default" and found.backend is None):
        return DEFAULT_STANCE
    return Stance(found.stance, found.backend)


def _follow(now: Stance) -> Stance:
    before = _set[0]
    _set[0] = DEFAULT_STANCE if now == DEFAULT_STANCE else now
    _forget_newest()
    return before


def _forget_newest() -> None:
    for region in [*REGIONS]:
        region.forget_newest()


def follow_stance() -> None:
    """Let setting the stance of torch take the entries out of all wrappers from now on.

    Called after each compilation: the first imports `torch._dynamo`, if nothing has before.
    """
    module: Any = sys.modules.get("torch._dynamo.decorators")
    original = getattr(module, "_set_stance", None)
    if original is None or hasattr(original, "_stator_follows"):
        return

    @functools.wraps(original)
    def set_and_forget(stance: Any) -> Any:
        before = original(stance)
        _forget_newest()
        return before

    setattr(set_and_forget, "_stator_follows", True)
    module._set_stance = set_and_forget


class set_stance:  # named like torch's
    """Set the stance: for good when called, for a block in a `with` statement, for each call as a
    decorator.

    `default`; `force_eager`: nothing runs compiled; `eager_on_recompile`: calls without a valid
    entry run eagerly; `fail_on_recompile`: they raise InvalidUse; `eager_then_compile` and
    `aot_eager_then_compile`: the first call runs eagerly, so that sizes which change have been seen
    when the second one is compiled.
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        if stance not in STANCES:
            raise InvalidOption(f"stance={stance!r} is not valid", f"one of {STANCES}", "stance")
        if skip_guard_eval_unsafe:
            raise InvalidUse("skip_guard_eval_unsafe is not supported", "all guards are checked")
        if force_backend is not None and stance != "default":
            raise InvalidUse(
                "force_backend needs the default stance", "leave one of the two arguments out"
            )
        self.stance = Stance(stance, force_backend)
        self.before = _follow(self.stance)

    def __call__(self, fn: F) -> F:
        _follow(self.before)
        chosen = self.stance

        @functools.wraps(fn)
        def under_stance(*args: object, **kwargs: object) -> Any:
            with set_stance(chosen.name, force_backend=chosen.backend):
                return fn(*args, **kwargs)

        return under_stance  # type: ignore[return-value]

    def __enter__(self) -> None:
        _follow(self.stance)

    def __exit__(self, *error: object) -> None:
        _follow(self.before)


for _method in (set_stance.__init__, set_stance.__enter__, set_stance.__exit__):
    setattr(_method, "_stator_disable", True)
