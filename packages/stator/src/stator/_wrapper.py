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

A hit costs two calls: the guards and the entry. Defaults are looked up on the original, so that
changing them there works. Names that a parameter has already get underscores.
"""

import functools
import inspect
import keyword
import types
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, Protocol

from stator_bytecode import PASSED_OVER, Goto
from stator_guards import Entry, load_source

from stator._fallback import EagerFallback
from stator._region import Region
from stator._target import parameters_of
from stator._traceback import WRAPPERS, hide

ORIGINAL = "__stator_original__"
"""The key, in the globals of a wrapper, of the function it was made for. `functools.wraps` copies
attributes, not globals."""

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
            return {run}(({state}))
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
    """The callee of a wrapper: a region, or an object around one."""

    @property
    def newest(self) -> list[Entry]: ...

    @property
    def finish(self) -> Callable[[Any], Any]: ...

    def run(self, state: tuple[Any, ...]) -> Any: ...


def make_wrapper(fn: FunctionType, runner: Runner, region: Region | None = None) -> FunctionType:
    """A function with the signature, name and documentation of `fn` that runs `runner`."""
    made = _load(fn, runner, region)
    made.__defaults__ = (Unset,) * len(fn.__defaults__ or ())
    made.__kwdefaults__ = dict.fromkeys(fn.__kwdefaults__ or (), Unset)
    functools.update_wrapper(made, fn)
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


def original_of(fn: Any) -> Any:
    """The function that a wrapper was made for; None for anything that is not a wrapper."""
    return fn.__globals__.get(ORIGINAL) if isinstance(fn, FunctionType) else None


def region_of(fn: Any) -> Region | None:
    """The region that a wrapper runs."""
    found: Region | None = fn.__globals__[REGION] if original_of(fn) is not None else None
    return found


def _load(fn: FunctionType, runner: Runner, region: Region | None) -> FunctionType:
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
    parameters = parameters_of(fn.__code__)
    names = _unlike(parameters, (*_GLOBALS, *_LOCALS, *_BUILTINS))
    name = (
        fn.__name__
        if fn.__name__.isidentifier() and not keyword.iskeyword(fn.__name__)
        else "compiled"
    )
    text = _text(fn, name, parameters, names)
    filename = f"{WRAPPERS}{fn.__qualname__} {id(runner):#x}>{PASSED_OVER}"
    namespace: dict[str, Any] = {
        names[key]: value for key, value in zip(_GLOBALS, values, strict=True)
    }
    namespace |= {names[key]: value for key, value in _BUILTINS.items()}
    namespace |= {REGION: region, ORIGINAL: fn, "__name__": fn.__module__}
    made: FunctionType = load_source(text, filename, namespace, runner)[name]
    return made


def _text(fn: FunctionType, name: str, parameters: tuple[str, ...], names: dict[str, str]) -> str:
    return TEMPLATE.format(
        function=name,
        signature=_signature(fn),
        defaults="".join(_default_lines(fn, names)),
        arguments=", ".join(parameters),
        state="".join(f"{parameter}, " for parameter in parameters),
        **names,
    )


def _unlike(taken: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """Return each wanted name, with underscores appended while it is taken."""
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


def default_of(fn: FunctionType, name: str) -> Any:
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
