"""The function a user gets back: the signature of the original, the guards of the entries, nothing else on the hot path."""

from __future__ import annotations

import functools
import inspect
import linecache
from types import FunctionType
from typing import Any

from stator_bytecode import Goto

from stator._fallback import Plainly
from stator._region import Region

TEMPLATE = """\
def {name}({signature}):
    entry = lookup(backend, ({state}))
    if entry is None:
        return run(({state}))
    result = entry.run({arguments})
    return result if type(result) not in unfinished else finish(result)
"""


def make_wrapper(fn: FunctionType, region: Region) -> Any:
    """A function with the signature, name and documentation of `fn` that runs `region`."""
    parameters = region.root.target.parameters
    name = fn.__name__ if fn.__name__.isidentifier() else "compiled"
    namespace: dict[str, Any] = {
        "lookup": lambda key, state: region.root.cache.lookup(key, state),
        "backend": region.options.backend,
        "run": region.run,
        "finish": region.finish,
        "unfinished": frozenset({Goto, Plainly}),
    }
    clash = {key: f"stator_{key}" for key in namespace if key in parameters or key == name}
    state = "".join(f"{p}, " for p in parameters)
    text = TEMPLATE.format(
        name=name, signature=_signature(fn), state=state, arguments=", ".join(parameters)
    )
    for key, other in clash.items():
        text = text.replace(f"{key}(", f"{other}(").replace(f" {key}", f" {other}")
        namespace[other] = namespace[key]
    filename = f"<stator wrapper of {fn.__qualname__}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), namespace)
    wrapper = functools.wraps(fn)(namespace[name])
    wrapper.__defaults__ = fn.__defaults__
    wrapper.__kwdefaults__ = fn.__kwdefaults__
    wrapper.__stator_original__ = fn
    wrapper.__stator_region__ = region
    return wrapper


def _signature(fn: FunctionType) -> str:
    """The parameter list, each default a placeholder: the real ones are set on the function object."""
    parts: list[str] = []
    code = fn.__code__
    positional = code.co_varnames[: code.co_argcount]
    first_default = code.co_argcount - len(fn.__defaults__ or ())
    for index, name in enumerate(positional):
        parts.append(name if index < first_default else f"{name}=None")
        if index + 1 == code.co_posonlyargcount:
            parts.append("/")
    rest = list(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
    extra = list(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*{extra.pop(0)}")
    elif rest:
        parts.append("*")
    parts += [f"{name}=None" if name in (fn.__kwdefaults__ or {}) else name for name in rest]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append(f"**{extra.pop(0)}")
    return ", ".join(parts)
