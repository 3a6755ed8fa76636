"""The function a user gets back: the signature of the original, the guards of the newest entry,
then that entry.

For `def f(x, y=1)` the text is

    def f(x, y=Unset):
        try:
            if y is Unset: y = default(original, 'y')
            entry = newest[0]
            if not entry.guards.check(x, y):
                return run((x, y,))
            result = entry.run(x, y)
            if type(result) is Goto or type(result) is EagerFallback:
                return finish(result)
            return result
        except BaseException as error:
            hide(error)
            raise

A hit costs two calls: the guards and the entry, which are given `original` too where it shares
entries with others made of the same code. Defaults are looked up on the original, so that changing
them there works. Names that a parameter has already get underscores.
"""

import functools
import inspect
import keyword
import types
from collections.abc import Callable, Hashable, Iterable
from types import CodeType, FunctionType
from typing import Any, Protocol

from stator_bytecode import PASSED_OVER, FlatState, Goto
from stator_guards import Entry, load_source, tuple_text
from stator_variables import ORIGINAL

from stator._program._fallback import EagerFallback
from stator._program._interoperation import show_to_dynamo
from stator._program._target import Root, parameters_of
from stator._program._traceback import WRAPPERS, hide
from stator._regions._region import Region

REGION = "__stator_region__"

_GLOBALS = (
    "Unset",
    "default",
    "original",
    "newest",
    "run",
    "Goto",
    "EagerFallback",
    "finish",
    "hide",
)
_LOCALS = ("entry", "result", "error")
_BUILTINS = {"type": type, "BaseException": BaseException}

TEMPLATE = """\
def {function}({signature}):
    try:
{defaults}\
        {entry} = {newest}[0]
        if not {entry}.guards.check({arguments}):
            return {run}({state})
        {result} = {entry}.run({arguments})
        if {type}({result}) is {Goto} or {type}({result}) is {EagerFallback}:
            return {finish}({result})
        return {result}
    except {BaseException} as {error}:
        {hide}({error})
        raise
"""


class _Unset:
    """The default of a wrapper's parameter, replaced by the current default of the original on each
    call."""

    def __repr__(self) -> str:
        return "<the default of the original>"


Unset = _Unset()


class Runner(Protocol):
    """The callee of a wrapper: the runner of a region, or an object around one."""

    @property
    def newest(self) -> list[Entry]: ...

    @property
    def finish(self) -> Callable[[Any], Any]: ...

    def run(self, state: FlatState) -> Any: ...


def make_wrapper(
    fn: FunctionType, runner: Runner, root: Root, region: Region | None = None
) -> FunctionType:
    """Make a function with the signature, name and documentation of `fn` that runs `runner`.

    Those of one pool have one code, since a function may be decorated on every call of another.
    """
    made = _load(fn, runner, root, region)
    made.__defaults__ = (Unset,) * len(fn.__defaults__ or ())
    made.__kwdefaults__ = dict.fromkeys(fn.__kwdefaults__ or (), Unset)
    functools.update_wrapper(made, fn)
    show_to_dynamo(made, fn)
    # `inspect.signature` reads these first
    if not hasattr(fn, "__wrapped__") and not hasattr(fn, "__signature__"):
        setattr(made, "__signature__", SignatureOf(fn))
    return made


class SignatureOf(inspect.Signature):
    """The signature of a function, computed on each access, since its defaults may change."""

    __slots__ = ("_fn",)

    def __init__(self, fn: FunctionType) -> None:
        super().__init__()
        self._fn = fn

    @property
    def parameters(self) -> types.MappingProxyType[str, inspect.Parameter]:
        return inspect.signature(self._fn).parameters

    @property
    def return_annotation(self) -> Any:
        return inspect.signature(self._fn).return_annotation

    def replace(self, **changes: Any) -> Any:
        return inspect.signature(self._fn).replace(**changes)

    def __reduce__(self) -> Any:
        return inspect.signature, (self._fn,)


def original_of(fn: object) -> Any:
    """The function that a wrapper was made for; None for anything that is not a wrapper."""
    return fn.__globals__.get(ORIGINAL) if isinstance(fn, FunctionType) else None


def region_of(fn: Any) -> Region | None:
    """The region that a wrapper runs."""
    found: Region | None = fn.__globals__[REGION] if original_of(fn) is not None else None
    return found


def _load(fn: FunctionType, runner: Runner, root: Root, region: Region | None) -> FunctionType:
    values = (
        Unset,
        default_of,
        fn,
        runner.newest,
        runner.run,
        Goto,
        EagerFallback,
        runner.finish,
        hide,
    )

    names = _unlike(parameters_of(fn.__code__), (*_GLOBALS, *_LOCALS, *_BUILTINS))
    code = _code(fn, names, root, runner if region is None else region.pool)

    namespace: dict[str, Any] = {
        names[key]: value for key, value in zip(_GLOBALS, values, strict=True)
    }
    namespace |= {names[key]: value for key, value in _BUILTINS.items()}
    namespace |= {REGION: region, ORIGINAL: fn, "__name__": fn.__module__}
    return FunctionType(code, namespace)


def _code(fn: FunctionType, names: dict[str, str], root: Root, owner: object) -> CodeType:
    """Return the code of a wrapper; its text is shown as long as `owner` lives, which keeps it."""
    known: dict[Hashable, CodeType] = getattr(owner, "wrappers", {})
    key = fn.__name__, tuple(_with_default(fn))
    if key not in known:
        is_name = fn.__name__.isidentifier() and not keyword.iskeyword(fn.__name__)
        name = fn.__name__ if is_name else "compiled"
        filename = f"{WRAPPERS}{fn.__qualname__} {id(owner):#x} {len(known)}>{PASSED_OVER}"
        made = load_source(_text(fn, name, root, names), filename, {}, owner)[name]
        known[key] = made.__code__
    return known[key]


def _text(fn: FunctionType, name: str, root: Root, names: dict[str, str]) -> str:
    given = parameters_of(fn.__code__)
    if root.fn is None:
        given = (names["original"], *given)
    return TEMPLATE.format(
        function=name,
        signature=_signature(fn),
        defaults="".join(_default_lines(fn, names)),
        arguments=", ".join(given),
        state=tuple_text(given),
        **names,
    )


def _unlike(taken: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """Return each requested name, with underscores appended while it is taken."""
    seen = set(taken)
    names = {}
    for name in wanted:
        free = name
        while free in seen:
            free += "_"
        names[name] = free
    return names


def _with_default(fn: FunctionType) -> list[str]:
    code = fn.__code__
    positional = code.co_varnames[: code.co_argcount]
    return [*positional[len(positional) - len(fn.__defaults__ or ()) :], *(fn.__kwdefaults__ or ())]


def _default_lines(fn: FunctionType, names: dict[str, str]) -> list[str]:
    unset, default, original = names["Unset"], names["default"], names["original"]
    return [
        f"        if {name} is {unset}: {name} = {default}({original}, {name!r})\n"
        for name in _with_default(fn)
    ]


def default_of(fn: FunctionType, name: str) -> object:
    """The default that `fn` has for a parameter now. Raises TypeError, as a call would, when it has
    none any more."""
    code = fn.__code__
    if name in code.co_varnames[: code.co_argcount]:
        defaults = fn.__defaults__ or ()
        index = code.co_varnames.index(name) - (code.co_argcount - len(defaults))
        if 0 <= index < len(defaults):
            return defaults[index]
    elif name in (fn.__kwdefaults__ or {}):
        return (fn.__kwdefaults__ or {})[name]
    raise TypeError(f"{fn.__qualname__}() missing a required argument: {name!r}")


def _signature(fn: FunctionType) -> str:
    """The parameter list, each default a placeholder: the real ones are set on the function
    object."""
    # without `__wrapped__` and `__signature__`, which may differ
    bare = FunctionType(fn.__code__, {}, None, fn.__defaults__, fn.__closure__)
    bare.__kwdefaults__ = fn.__kwdefaults__
    parameters = inspect.signature(bare).parameters.values()
    written = [
        each if each.default is each.empty else each.replace(default=None) for each in parameters
    ]
    return str(inspect.Signature(written))[1:-1]
