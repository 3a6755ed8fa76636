"""Graphs that AOTAutograd refuses, and the operator that it had come to."""

import os
from pathlib import Path
from traceback import walk_tb

import torch
from torch._functorch import _aot_autograd
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
from torch.fx import GraphModule, Interpreter, Node

from .errors import BackendError


def refused_by_autograd(failure: BackendError) -> str:
    """Return what AOTAutograd raised for a graph that it does not take; empty for any other
    failure.

    Examples are inputs that share memory without being views of each other for autograd, a write to
    what backward needs, or a backward that no fake tensor can pass. The error may come from a
    function of torch that AOTAutograd calls, as long as that compiles nothing.
    """
    error = failure.__cause__
    traceback = None if error is None else error.__traceback__
    files = [frame.f_code.co_filename for frame, _ in walk_tb(traceback)]
    inside = [i for i, file in enumerate(files) if file.startswith(_AOT_AUTOGRAD)]
    if not inside:
        return ""

    called = files[inside[-1] :]
    is_its_own = all(file.startswith(_TORCH) and not file.startswith(_COMPILERS) for file in called)
    if isinstance(error, _UNTRACEABLE) or is_its_own:
        return f"{type(error).__name__}: {error}"
    return ""


_UNTRACEABLE = (
    UnsupportedOperatorException,
    DynamicOutputShapeException,
    DataDependentOutputException,
)
_AOT_AUTOGRAD, _TORCH = (
    str(Path(str(module.__file__)).parent) + os.sep for module in (_aot_autograd, torch)
)
_COMPILERS = tuple(
    str(Path(_TORCH, *parts)) + os.sep for parts in (("_inductor",), ("_dynamo", "backends"))
)


def node_refused(failure: BackendError, gm: GraphModule) -> Node | None:
    """Return the node of ``gm`` that was traced when AOTAutograd raised; None if it is not
    known."""
    error = failure.__cause__
    traceback = None if error is None else error.__traceback__
    found = None
    for frame, _ in walk_tb(traceback):
        if frame.f_code is not Interpreter.run.__code__:
            continue
        node = frame.f_locals.get("node")
        if isinstance(node, Node) and node.graph is gm.graph and node.op.startswith("call_"):
            found = node
    return found
