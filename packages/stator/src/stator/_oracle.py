"""Oracle mode: each call runs the plain function on copies first, then the compiled one, and compares what they did.

Compared are the result with its structure, types, values and sharing, or the exception; what the arguments have become;
the random stream and the grad mode afterwards. What the function does to globals and closures happens twice, and
arguments that cannot be copied are not compared.
"""

from __future__ import annotations

import copy
import traceback
import warnings
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

import attrs
import torch
from stator_bytecode import passed_over

from stator._region import NOTHING, Region
from stator._traceback import OWN_CODES
from stator.errors import OracleMismatch, SourceSpan, StatorError

_ATOMS = (int, float, complex, str, bytes, bool, type(None))


@attrs.frozen(eq=False)
class Outcome:
    """What one run gave and left."""

    result: Any
    error: BaseException | None
    random: torch.Tensor
    grad: bool

    @classmethod
    def now(cls, result: Any = None, error: BaseException | None = None) -> Outcome:
        return cls(result, error, torch.get_rng_state(), torch.is_grad_enabled())


@attrs.define(eq=False)
class Oracle:
    """Stands where a wrapper has its region: never a fast hit, and `run` compares."""

    region: Region
    fn: FunctionType
    newest: list[Any] = attrs.field(factory=lambda: [NOTHING])

    @property
    def finish(self) -> Any:
        return self.region.finish

    def run(self, state: tuple[Any, ...]) -> Any:
        random, grad = torch.get_rng_state(), torch.is_grad_enabled()
        try:
            copies = copies_of(state)
        except Exception as reason:  # copying runs code of the user's classes, which may raise anything
            warnings.warn(f"oracle: not compared, an argument cannot be copied: {reason}", stacklevel=3)
            return self.region.run(state)
        expected = self._plain(copies)
        torch.set_rng_state(random)
        torch._C._set_grad_enabled(grad)
        try:
            result = self.region.run(state)
        except StatorError:
            raise
        except Exception as error:
            self._compare(expected, Outcome.now(error=error), copies, state)
            raise
        self._compare(expected, Outcome.now(result), copies, state)
        return result

    def _plain(self, copies: tuple[Any, ...]) -> Outcome:
        try:
            return Outcome.now(self.region.root.target.plain()(*copies))
        except Exception as error:  # whatever the program raises is its outcome
            return Outcome.now(error=error)

    def _compare(self, expected: Outcome, found: Outcome, copies: Any, state: Any) -> None:
        names = self.region.root.target.parameters
        parts = [
            ("the exception", _described(expected.error), _described(found.error)),
            ("the result", expected.result, found.result),
            *((f"the argument {name}", a, b) for name, a, b in zip(names, copies, state, strict=True)),
            ("the random stream", expected.random, found.random),
            ("the grad mode", expected.grad, found.grad),
        ]
        pairs: dict[int, Any] = {}
        for what, a, b in parts:
            for where, left, right in differences(a, b, what, pairs):
                raise OracleMismatch(where, left, right, self._where(expected)) from found.error

    def _where(self, expected: Outcome) -> SourceSpan:
        """The line that raised, else the function."""
        if expected.error is not None:
            frame = traceback.extract_tb(expected.error.__traceback__)[-1]
            return SourceSpan(frame.filename, frame.name, frame.lineno)
        code = self.fn.__code__
        return SourceSpan(code.co_filename, self.fn.__qualname__, code.co_firstlineno)


def _described(error: BaseException | None) -> Any:
    return None if error is None else (type(error).__name__, str(error))


def copies_of(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """A deep copy that keeps what is shared. Tensors with a history, which deepcopy refuses, become leaves."""
    computed = [tensor for tensor in _tensors(state, set()) if not tensor.is_leaf]
    return copy.deepcopy(state, {id(tensor): tensor.detach().clone().requires_grad_() for tensor in computed})


def _tensors(value: Any, seen: set[int]) -> Iterator[torch.Tensor]:
    if id(value) in seen or isinstance(value, _ATOMS):
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value
    for part in _parts(value).values():
        yield from _tensors(part, seen)


def _parts(value: Any) -> dict[str, Any]:
    """What a value is made of, by the text that is added to its own name."""
    if isinstance(value, dict):
        return {f"[{key!r}]": item for key, item in [*value.items()]}
    if isinstance(value, list | tuple):
        return {f"[{index}]": item for index, item in enumerate(value)}
    if isinstance(value, torch.Tensor | type | FunctionType | MethodType):
        return {}
    return {f".{name}": item for name, item in [*getattr(value, "__dict__", {}).items()]}


def differences(a: Any, b: Any, where: str, pairs: dict[int, Any]) -> Iterator[tuple[str, str, str]]:
    """Where `b` is not what `a` is. `pairs` remembers which object stands for which: sharing is compared too."""
    if a is b:
        return
    if not _is_same_class(type(a), type(b)):
        yield f"the type of {where}", type(a).__name__, type(b).__name__
    elif isinstance(a, _ATOMS):
        if repr(a) != repr(b):
            yield where, repr(a), repr(b)
    elif id(a) in pairs:
        if pairs[id(a)][1] is not b:
            yield f"the identity of {where}", "an object seen before", "another object"
    else:
        pairs[id(a)] = (a, b)
        yield from _inner_differences(a, b, where, pairs)


def _is_same_class(a: type, b: type) -> bool:
    """A class that the function makes is another one in each run."""
    return a is b or (a.__module__, a.__qualname__) == (b.__module__, b.__qualname__)


def _inner_differences(a: Any, b: Any, where: str, pairs: dict[int, Any]) -> Iterator[tuple[str, str, str]]:
    if isinstance(a, torch.Tensor):
        yield from _tensor_differences(a, b, where)
        return
    ours, theirs = _parts(a), _parts(b)
    if list(ours) != list(theirs):
        yield f"the parts of {where}", str(list(ours)), str(list(theirs))
        return
    for name, part in ours.items():
        yield from differences(part, theirs[name], where + name, pairs)


def _tensor_differences(a: torch.Tensor, b: torch.Tensor, where: str) -> Iterator[tuple[str, str, str]]:
    for fact in ("shape", "dtype", "device", "requires_grad"):
        if getattr(a, fact) != getattr(b, fact):
            yield f"the {fact} of {where}", str(getattr(a, fact)), str(getattr(b, fact))
            return
    try:
        torch.testing.assert_close(b, a, equal_nan=True)
    except AssertionError as error:
        lines = [line for line in str(error).splitlines() if line]
        yield f"the values of {where}", str(a.detach()), f"{b.detach()}\n  {' '.join(lines)}"


OWN_CODES.update(passed_over(Oracle.run))
