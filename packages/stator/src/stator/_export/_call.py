"""The call that is captured: a function of the flat arguments, named as the subject names them.

    module, (x,), {"mask": m}        def forward(self, x, mask):
                                         return self(x, mask=mask)

Sources are then named in the words of the program, for modules and functions alike.
"""

import inspect
import keyword
import linecache
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import attrs
import torch

from stator._program._module import CompiledModule
from stator._program._target import Root
from stator.errors import InvalidUse

FILENAME = "<stator capture>"
_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_GATHERED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@attrs.frozen(eq=False)
class CapturedCall:
    """A subject with the arguments of one call, and the function that makes it.

    `bound` maps each parameter of the subject to its argument, as `inspect.Signature.bind` does.
    """

    subject: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    root: Root
    bound: Mapping[str, Any]
    gathered: frozenset[str]
    """The names of `*args` and `**kwargs`."""

    @property
    def state(self) -> tuple[Any, ...]:
        return self.state_of(self.args, self.kwargs)

    @property
    def named(self) -> dict[str, Any]:
        """The flat arguments by their names in sources, the subject first."""
        return dict(zip(self.root.parameters, self.state, strict=True))

    def state_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the flat arguments of a call of the same structure."""
        return self.subject, *args, *kwargs.values()


def captured_call(
    subject: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None
) -> CapturedCall:
    """Bind the arguments. Raises InvalidUse for a subject that cannot be called with them."""
    subject = subject._stator_model if isinstance(subject, CompiledModule) else subject
    kwargs = dict(kwargs or {})
    if not callable(subject):
        raise InvalidUse(f"cannot capture {subject!r}: it is not callable", "pass a function")
    if not isinstance(args, tuple):
        hint = "write (x,) for one argument"
        raise InvalidUse(f"the arguments are a {type(args).__name__}, not a tuple", hint)
    if wrong := [name for name in kwargs if not name.isidentifier() or keyword.iskeyword(name)]:
        raise InvalidUse(f"the keyword {wrong[0]!r} is no identifier", "rename it")

    signature = signature_of(subject)
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        hint = "pass the arguments of one call"
        raise InvalidUse(f"cannot call {_name_of(subject)}: {error}", hint) from None

    parameters = signature.parameters.values()
    gathered = [each.name for each in parameters if each.kind in _GATHERED]
    named = [each.name for each in parameters if each.kind in _NAMED][: len(args)]
    positional = [*named, *(f"{gathered[0]}_{i}" for i in range(len(args) - len(named)))]
    owner = "self" if isinstance(subject, torch.nn.Module) else "function"
    while owner in (*positional, *kwargs):
        owner += "_"
    given = ", ".join([*positional, *(f"{name}={name}" for name in kwargs)])
    fn = _function(_name_of(subject), [owner, *positional, *kwargs], f"{owner}({given})")
    return CapturedCall(subject, args, kwargs, Root.of(fn), bound, frozenset(gathered))


def signature_of(subject: Any) -> inspect.Signature:
    """Return the signature of a callable, of a module that of its `forward`; where there is none,
    one that takes all arguments."""
    called = subject.forward if isinstance(subject, torch.nn.Module) else subject
    try:
        return inspect.signature(called)
    except (TypeError, ValueError):  # a function in C
        return inspect.signature(lambda *args, **kwargs: None)


def _name_of(subject: Any) -> str:
    if isinstance(subject, torch.nn.Module):
        return "forward"
    name = getattr(subject, "__name__", "")
    return name if name.isidentifier() and not keyword.iskeyword(name) else "call"


def _function(name: str, parameters: list[str], expression: str) -> FunctionType:
    text = f"def {name}({', '.join(parameters)}):\n    return {expression}\n"
    linecache.cache[FILENAME] = len(text), None, text.splitlines(keepends=True), FILENAME
    namespace: dict[str, Any] = {}
    exec(compile(text, FILENAME, "exec"), namespace)
    made: FunctionType = namespace[name]
    return made
