"""Compiled functions under Dynamo, which also runs in eager `torch.cond`, `flex_attention` and
export.

Dynamo cannot trace a wrapper: it reads guards and entries of ours. It inlines the function in
`_torchdynamo_inline` instead, and `torch.compile` takes `_torchdynamo_orig_callable` where the
identity of what it was given is `_torchdynamo_wrapper_id`. Where the original breaks Dynamo's
graph, the wrapper is called natively; Dynamo then leaves it and everything below it alone.
"""

from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

import torch

_OF_DYNAMO = ("_torchdynamo_inline", "_torchdynamo_orig_callable", "_torchdynamo_wrapper_id")
_INLINE, ORIGINAL_CALLABLE, _IDENTITY = _OF_DYNAMO
_FRAMES = torch._C._dynamo.eval_frame
_SKIP = _FRAMES._FrameExecStrategy(_FRAMES._FrameAction.SKIP, _FRAMES._FrameAction.SKIP)


class _Attributes(dict[str, object]):
    """The attributes of a wrapper. `functools.wraps` reads them by `keys`, which omits Dynamo's:
    a function around the wrapper would be replaced by the original, too."""

    def keys(self) -> list[str]:  # type: ignore[override]
        return [*self]

    def __iter__(self) -> Iterator[str]:
        return (name for name in super().__iter__() if name not in _OF_DYNAMO)


def show_to_dynamo(wrapper: FunctionType, original: FunctionType) -> None:
    """Let Dynamo trace `original` in place of its wrapper."""
    wrapper.__dict__ = _Attributes(wrapper.__dict__)
    setattr(wrapper, _INLINE, original)
    show_callable_to_dynamo(wrapper, wrapper, original)
    leave_to_python(wrapper)


def leave_to_python(function: Any) -> None:
    """Let Dynamo trace neither a function that is called natively, nor anything that it calls."""
    _FRAMES.set_code_exec_strategy(function.__code__, _SKIP)


def show_callable_to_dynamo(
    compiled: FunctionType | MethodType, wrapper: FunctionType, original: object
) -> None:
    """Let `torch.compile(compiled)`, which is `wrapper` or bound to it, compile `original`."""
    setattr(wrapper, ORIGINAL_CALLABLE, original)
    setattr(wrapper, _IDENTITY, id(compiled))
