"""The oracle: `check(fn, args, ...)` runs a function plainly and traced, each on its own copy, and
compares all it can see.

A traced call is what the facade does, in small: the Machine over trackers, an entry from the
Emitter, guards over its parameters, the Site's native step at a break and a new trace of the
continuation. `TinyGraph` records tensor operations and replays them on real tensors.
"""

from __future__ import annotations

import copy
import enum
import types
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest
import torch
from hypothesis import HealthCheck, settings
from stator_bytecode import (
    DEFAULT,
    Broke,
    Goto,
    Machine,
    Point,
    Returned,
    Site,
    Unsupported,
    drive,
    layout_of,
    plain,
)
from stator_guards import CapturedSource, GuardSet, ParameterSource, Source, compile_guards
from stator_variables import (
    DEFAULT_HANDLERS,
    Dim,
    Emitter,
    GraphValue,
    RaisedBefore,
    Space,
    StandardSpace,
    SymbolicDomain,
    emit_effects,
    function_frame,
    generator_state,
    globals_tracker,
    wrap,
)
from torch._subclasses.fake_tensor import FakeTensorMode

# The same examples each time, and no limit on time: machines that run tests are shared.
settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deterministic")


class TinyGraph:
    """A GraphRecorder: a list of operations with fake results."""

    def __init__(self) -> None:
        self.fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.shape_env, self.learned = None, 0
        self.inputs: list[Source] = []
        self.known: dict[Source, GraphValue] = {}
        self.operations: list[tuple[Any, Any, Any]] = []

    def tensor_input(
        self, source: Source, tensor: torch.Tensor, dims: Sequence[Dim], hint: str
    ) -> GraphValue:
        if source not in self.known:
            self.known[source] = GraphValue(
                ("input", len(self.inputs)), self.fake_mode.from_tensor(tensor)
            )
            self.inputs.append(source)
        return self.known[source]

    def number_input(self, source: Source, value: int | float, hint: str) -> GraphValue:
        raise AssertionError("no symbolic numbers here")

    def call(self, target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> GraphValue:
        with self.fake_mode:
            example = _run(target, *_read((tuple(args), kwargs), lambda traced: traced.example))
        self.operations.append((target, tuple(args), kwargs))
        return _parts(("operation", len(self.operations) - 1), example)

    def attribute(self, owner: GraphValue, name: str) -> GraphValue:
        return self.call(getattr, [owner, name], {})

    def mark(self) -> Any:
        return len(self.operations)

    def rollback(self, mark: Any) -> None:
        del self.operations[mark:]

    def run(self, inputs: Sequence[Any], outputs: Sequence[GraphValue]) -> list[Any]:
        results: list[Any] = []

        def real(traced: GraphValue) -> Any:
            kind, index, *path = traced.node
            value = inputs[index] if kind == "input" else results[index]
            for part in path:
                value = value[part]
            return value

        for target, args, kwargs in self.operations:
            results.append(_run(target, *_read((args, kwargs), real)))
        return [real(traced) for traced in outputs]


def _run(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return (
        getattr(args[0], target)(*args[1:], **kwargs)
        if isinstance(target, str)
        else target(*args, **kwargs)
    )


def _parts(node: Any, example: Any) -> Any:
    if isinstance(example, tuple | list):
        parts = [_parts((*node, i), item) for i, item in enumerate(example)]
        return GraphValue(node, type(example)(parts))
    return GraphValue(node, example)


def _read(value: Any, real: Callable[[GraphValue], Any]) -> Any:
    if isinstance(value, GraphValue):
        return real(value)
    if isinstance(value, tuple | list):
        return type(value)(_read(item, real) for item in value)
    if isinstance(value, dict):
        return {key: _read(item, real) for key, item in value.items()}
    return (
        slice(*_read((value.start, value.stop, value.step), real))
        if isinstance(value, slice)
        else value
    )


class Bug(BaseException):
    """An error of ours: not an outcome of the program."""


@attrs.define
class Compiled:
    """A function with its entries; `breaks`: the reasons of all breaks met; `misses`: how often
    guards did not hold."""

    fn: types.FunctionType
    entries: dict[Any, list[tuple[GuardSet, Any, str]]] = attrs.field(factory=dict)
    breaks: list[Unsupported] = attrs.field(factory=list)
    traces: int = 0

    def __call__(self, *args: Any) -> Any:
        result = self._enter(None, args)
        return drive(result.site, result.take(), self._enter) if type(result) is Goto else result

    def _enter(self, point: Point | None, state: tuple[Any, ...]) -> Any:
        for guards, run, _ in self.entries.setdefault(point, []):
            if guards.check(*state):
                return run(*state)
        return self._trace(point, state)(*state)

    def _trace(self, point: Point | None, state: tuple[Any, ...]) -> Any:
        self.traces += 1
        graph = TinyGraph()
        t = StandardSpace(graph, DEFAULT_HANDLERS)
        domain = SymbolicDomain(t)
        t.machine = machine = Machine(domain, DEFAULT)
        names = self.fn.__code__.co_varnames[: len(state)] if point is None else point.parameters
        trackers = [
            wrap(t, value, ParameterSource(name)) for name, value in zip(names, state, strict=True)
        ]
        try:
            outcome = machine.run(self._frames(t, domain, point, trackers))
            outcome, run, text = _written(t, graph, outcome, machine, names)
        except Unsupported as reason:
            self.breaks.append(reason)
            return plain(point) if point is not None else self.fn
        except Exception as bug:
            raise Bug("while tracing") from bug
        finally:
            t.restore_modes()
        if isinstance(outcome, Broke):
            self.breaks.append(outcome.reason)
        guards = compile_guards(t.finish_guards(), names)
        assert guards.check(*state), guards.explain(*state)
        self.entries[point].append((guards, run, text))
        return run

    def _frames(
        self, t: Space, domain: SymbolicDomain, point: Point | None, trackers: list[Any]
    ) -> list[Any]:
        if point is None:
            return [function_frame(t, wrap(t, self.fn, CapturedSource("fn", self.fn)), trackers)]
        return point.frames_from(
            trackers, domain.make_generator, lambda namespace: globals_tracker(t, namespace)
        )


def _written(
    t: Space, graph: TinyGraph, outcome: Any, machine: Machine, names: Sequence[str]
) -> tuple[Any, Any, str]:
    while True:
        try:
            return outcome, *_entry(t, graph, outcome, names)
        except RaisedBefore as needed:
            _, saved = machine.origins.pop(id(needed.tracker))
            outcome = Broke(
                machine.go_back(saved), Unsupported("exception-object", "", "", t.where())
            )


def _entry(t: Space, graph: TinyGraph, outcome: Any, names: Sequence[str]) -> tuple[Any, str]:
    emitter = Emitter(t)
    if isinstance(outcome, Returned):
        ending = f"return {emitter.expr(outcome.value)}"
    else:
        point, trackers = layout_of(
            outcome.snapshot, generator_state, lambda frame: frame.globals.real
        )
        values = "".join(f"{emitter.expr(vt)}, " for vt in trackers)
        ending = f"return {emitter.capture(Goto, 'Goto')}({emitter.capture(Site(point), 'site')}, ({values}))"
    emit_effects(emitter)
    inputs = ", ".join(emitter.load(source) for source in graph.inputs)
    outputs = emitter.outputs
    namespace = {**emitter.captured, "graph": lambda *given: graph.run(given, outputs)}
    call = [f"g = graph({inputs})"] if graph.operations or outputs else []
    lines = [*emitter.loads, *call, *emitter.lines, ending]
    text = f"def entry({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in lines)
    namespace.update(emitter.captured)
    exec(text, namespace)
    return namespace["entry"], text


# -- comparing -------------------------------------------------------------------------------------
ATOMS = (int, float, complex, str, bytes, bool, type(None))
_alive: list[Any] = []


def describe(value: Any, seen: dict[int, int] | None = None) -> Any:
    """A value as nested tuples in which identity, order and class count."""
    seen = {} if seen is None else seen
    if isinstance(
        value,
        int
        | float
        | complex
        | str
        | bytes
        | type
        | types.ModuleType
        | None
        | types.BuiltinFunctionType,
    ):
        return type(value), repr(value)
    if isinstance(value, enum.Enum):
        return type(value), repr(value)
    if type(value) is tuple and all(type(item) in ATOMS for item in value):
        return tuple, repr(value)  # the compiler shares equal constants
    if id(value) in seen:
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    _alive.append(value)  # no identity is used twice
    kind = type(value)
    return (
        kind,
        *_contents(value, seen),
        describe(dict(getattr(value, "__dict__", None) or {}), seen) if _owns(value) else (),
    )


def _owns(value: Any) -> bool:
    return bool(getattr(value, "__dict__", None)) and not isinstance(value, types.FunctionType)


def _contents(value: Any, seen: dict[int, int]) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, dict):
        kind = OrderedDict if isinstance(value, OrderedDict) else dict
        return [(describe(k, seen), describe(v, seen)) for k, v in kind.items(value)]
    if isinstance(value, set | frozenset):
        return sorted((describe(item, {}) for item in value), key=repr)
    if isinstance(value, BaseException):
        parts = (value.args, value.__cause__, value.__context__, value.__suppress_context__)
        return [str(value), *(describe(part, seen) for part in parts)]
    if isinstance(value, types.FunctionType):
        cells = [describe(cell.cell_contents, seen) for cell in value.__closure__ or ()]
        return [value.__code__, describe(value.__defaults__, seen), *cells]
    if isinstance(value, types.MethodType):
        return [describe(value.__func__, seen), describe(value.__self__, seen)]
    if any("__iter__" in vars(cls) for cls in type(value).__mro__) and not isinstance(value, range):
        parts = [describe(item, seen) for item in value]
        return [*parts, getattr(value, "maxlen", None)]
    return [
        describe(getattr(value, name), seen) for name in _slots(type(value)) if hasattr(value, name)
    ]


def _slots(kind: type) -> list[str]:
    return [
        name
        for cls in kind.__mro__
        for name in getattr(cls, "__slots__", ())
        if not name.startswith("__")
    ]


def outcome_of(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    seen: dict[int, int] = {}
    _alive.clear()
    try:
        result = fn(*args)
    except Exception as error:  # what the function raises is its outcome
        return "raised", describe(error, seen), describe(args, seen)
    return "returned", describe(result, seen), describe(args, seen)


@pytest.fixture
def compiler() -> type[Compiled]:
    """What compiles a function in the conformance kit."""
    return Compiled


@pytest.fixture
def check() -> Callable[..., Compiled]:
    """`check(fn, args…, breaks=0)`: each of `args` is a tuple of arguments, or a function that
    makes one."""

    def run(fn: Any, *calls: Any, breaks: int | None = 0, traces: int | None = None) -> Compiled:
        compiled = Compiled(fn)
        for number, make in enumerate(calls or ((),)):
            for _ in range(2):
                ours, theirs = (
                    (make(), make())
                    if callable(make)
                    else (copy.deepcopy(make), copy.deepcopy(make))
                )
                expected, actual = outcome_of(fn, ours), outcome_of(compiled, theirs)
                assert actual == expected, (
                    f"call {number}\n{expected}\n{actual}\n{_texts(compiled)}"
                )
        reasons = [f"{r.reason}: {r.detail}" for r in compiled.breaks if r.reason not in NATIVE]
        assert breaks is None or len(reasons) <= breaks, reasons
        assert traces is None or compiled.traces == traces, compiled.traces
        return compiled

    return run


NATIVE = ("bad-arguments", "exception-object")
"""Breaks that every test allows: calls that C refuses, and exceptions that get their traceback
natively."""


def _texts(compiled: Compiled) -> str:
    return "\n".join(text for entries in compiled.entries.values() for _, _, text in entries)
