"""A random program gives what plain Python gives: compiled beside plain, each with globals of its
own."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import copy
import dataclasses
import functools
import gc
import itertools
import math
import operator
import pathlib
import random
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import stator
import torch
from torch.utils.hooks import RemovableHandle

from integration_tests.corpora.fuzzing import _toolbox
from integration_tests.corpora.fuzzing._changes import Changes
from integration_tests.corpora.fuzzing._program import Inputs, Program
from integration_tests.corpora.models import Call
from integration_tests.support.oracle import assert_same
from integration_tests.support.world import World

MODULES = (
    *(
        collections,
        contextlib,
        contextvars,
        copy,
        dataclasses,
        functools,
        itertools,
        math,
        operator,
        random,
        types,
    ),
    *(stator, torch, warnings, weakref),
)
TOOLS = {
    name: tool
    for name, tool in vars(_toolbox).items()
    if getattr(tool, "__module__", "") == _toolbox.__name__
}


class Globals(Mapping[str, Any]):
    """What a program may have changed of its globals."""

    names = ("COUNT", "LOG", "TABLE", "HELD", "NET")
    __slots__ = ("__namespace",)  # what is to be compared are the items

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.__namespace = namespace

    def __getitem__(self, name: str) -> Any:
        return self.__namespace[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.names if name in self.__namespace)

    def __len__(self) -> int:
        return len(list(iter(self)))


def check(program: Program, file: pathlib.Path) -> None:
    """Compare the calls. ``file`` gets the text: tracebacks name it.

    A difference counts if it is there as well when garbage is collected between the calls (what
    dies in cycles keeps accumulators of gradients alive), and if plain Python agrees with itself
    (it does not about memory that nobody set).
    """
    file.write_text(program.text)
    try:
        _check(program, file, _compiled)
    except AssertionError:
        if _fails(program, file, _itself):
            return
        _check(program, file, _compiled, collects=True)


def _fails(program: Program, file: pathlib.Path, other: Callable[[Any, Program], Any]) -> bool:
    try:
        _check(program, file, other)
    except AssertionError:
        return True
    return False


def _check(
    program: Program,
    file: pathlib.Path,
    other: Callable[[Any, Program], Any],
    *,
    collects: bool = False,
) -> None:
    """Compare the calls of the program with those of what ``other`` makes of it."""
    ours, theirs = _namespace(program, file), _namespace(program, file)
    steps = zip(program.calls, program.changes or [()] * len(program.calls), strict=True)
    world = World.now()
    random.seed(program.number)
    torch.manual_seed(program.number)
    torch.set_warn_always(True)  # what is warned of once only, plain Python would have been told of
    gc.disable()  # what dies in cycles dies at no time that could be compared
    try:
        with np.errstate(all="ignore"):  # a graph warns of no contents of arrays
            assert_same(
                _in_full(ours["main"], ours, collects),
                _in_full(other(theirs["main"], program), theirs, collects),
                lambda: _changed((ours, theirs), *next(steps)),
                len(program.calls),
                owners=(Globals(ours), Globals(theirs)),
            )
    except Refused:
        return
    except Exception as error:
        error.add_note(f"{program}")
        raise
    finally:
        torch.set_warn_always(False)
        gc.enable()
        if program.changes:
            world.restore()


class Refused(BaseException):
    """`fullgraph` was asked for and cannot be had: not an outcome of the program."""


def _compiled(fn: Callable[..., Any], program: Program) -> Any:
    return stator.compile(
        fn, backend="eager", fullgraph=program.fullgraph, options=dict(program.options)
    )


def _itself(fn: Callable[..., Any], program: Program) -> Any:
    return fn


def _in_full(
    fn: Callable[..., Any], namespace: dict[str, Any], collects: bool
) -> Callable[..., Any]:
    """Both sides go through this one: it is part of tracebacks. Each counts the hooks it registers,
    and has classes."""
    hooks, kinds = 0, {name: namespace[name] for name in ("Box", "SmallBox")}

    @functools.wraps(fn)
    def run(*args: Any) -> Any:
        nonlocal hooks
        RemovableHandle.next_id = hooks
        box = args[3][2]
        box.__class__ = kinds[type(box).__name__]
        try:
            return fn(*args)
        except stator.Unsupported as reason:
            raise Refused from reason
        finally:
            hooks = RemovableHandle.next_id
            if collects:
                gc.collect()

    return run


def _namespace(program: Program, file: pathlib.Path) -> dict[str, Any]:
    namespace = {
        "__name__": "random_program",
        "np": np,
        **TOOLS,
        **{module.__name__: module for module in MODULES},
    }
    if program.changes:
        namespace |= _own_world()
    exec(compile(program.text, str(file), "exec", dont_inherit=True), namespace)
    return namespace


def _own_world() -> dict[str, Any]:
    """Classes and functions that may be changed, and the two functions that changes go through."""
    toolbox, changes = types.ModuleType(_toolbox.__name__), Changes()
    exec(
        compile(pathlib.Path(_toolbox.__file__).read_text(), _toolbox.__file__, "exec"),
        vars(toolbox),
    )
    torch.manual_seed(0)
    own = {name: tool for name, tool in vars(toolbox).items() if name in TOOLS}
    return {**own, "toolbox": toolbox, "swap": changes.swap, "back": changes.back}


def _changed(sides: tuple[dict[str, Any], ...], inputs: Inputs, changes: tuple[str, ...]) -> Call:
    """The next call, after the same changes on both sides. What cannot be done to this program, is
    not."""
    for text in changes:
        world, handle = World.now(), RemovableHandle.next_id
        for namespace in sides:
            world.restore()
            RemovableHandle.next_id = handle
            with contextlib.suppress(Exception):
                exec(compile(text, "<change>", "exec", dont_inherit=True), namespace)
    return make_call(inputs)


def make_call(inputs: Inputs) -> Call:
    dtype = torch.float64 if inputs.double else torch.float32
    count = inputs.size * inputs.size
    x = torch.linspace(-1, 2, count, dtype=dtype).reshape(inputs.size, inputs.size)
    x.requires_grad_(inputs.grad)
    y = {"same": x, "view": x.detach()}.get(
        inputs.sharing, torch.arange(float(count)).reshape_as(x) / 4
    )
    items = [4] if inputs.short else [4, 2, 3]
    box = (_toolbox.SmallBox if inputs.small else _toolbox.Box)(inputs.number, items)
    return Call((x, y, inputs.number, [items, {"a": inputs.number, "k": box}, box]))
