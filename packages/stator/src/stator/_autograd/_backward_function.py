"""The function of a compiled segment: text around its graph, and the guards on its arguments.

    [saved0, hook1] = given
    given.clear()
    v0 = hook1.__closure__[0].cell_contents
    inputs = [saved0, v0.scale]
    del saved0
    g = graph(inputs)
    v0.norm = g[1]
    return (g[0],)

No tensor is referred to longer than the graph, or an effect, needs it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from stator_backends import AliasLayout, Backend, boxed, lower
from stator_bytecode.errors import NOWHERE
from stator_guards import (
    Guard,
    GuardSet,
    ParameterSource,
    Source,
    compile_guards,
    function_text,
    load_source,
)
from stator_variables import refers_to

from stator._entries._graph_lowering import effects_of
from stator._entries._layout_guard import layout_guards
from stator.errors import InternalError, backend_boundary

if TYPE_CHECKING:
    from stator_subgraphs import CapturedGraph

_numbers = itertools.count()


@attrs.frozen(eq=False)
class TracedSegment:
    """The graph of a segment, the guards on its arguments, and the text around the graph.

    `loads` are lines ahead of it, `effects` lines and `result` an expression behind it, where `g`
    has its results. `objects` are constants of the text. `parameters` are those of the guards, of
    which the last ones are arguments. `repeats`: the segment may run again, as it is, if the graph
    raises.
    """

    captured: CapturedGraph
    fake_mode: Any
    guards: Sequence[Guard]
    parameters: Sequence[str]
    inputs: Sequence[str]
    loads: Sequence[str] = ()
    effects: Sequence[str] = ()
    result: str = "g"
    objects: dict[str, Any] = attrs.field(factory=dict)
    repeats: bool = False


@attrs.frozen(eq=False)
class CompiledSegment:
    """A segment compiled for some sizes: the guards over its arguments, and its function, which
    empties the list of these.

    `unguarded` is what the guards get for parameters that are no arguments. `repeats`: the segment
    may run again, as it is, if the function raises. `refused` is why the graph runs uncompiled, if
    it does.
    """

    guards: GuardSet
    unguarded: tuple[None, ...]
    function: Callable[[list[object]], Sequence[object]]
    repeats: bool
    refused: str


def compiled_segment(traced: TracedSegment, count: int, backend: Backend) -> CompiledSegment:
    """Lower the graph of a segment with so many arguments."""
    captured = traced.captured
    writes = bool(effects_of(captured).written)  # before a backend changes the graph
    with backend_boundary():
        lowered = lower(
            captured.module,
            captured.example_inputs(),
            backend,
            fake_mode=traced.fake_mode,
            contexts=captured.contexts,
            separable=True,
            refuses_writes=True,
        )

    facts = [Guard(None, fact.expression, fact.where) for fact in captured.shape_guards()]
    relied_on = [each for each in lowered.guards if writes or not isinstance(each, AliasLayout)]
    facts += layout_guards(relied_on, captured, NOWHERE)
    guards = compile_guards([*traced.guards, *facts], traced.parameters)

    unguarded = len(traced.parameters) - count
    function = _function(traced, traced.parameters[unguarded:], boxed(lowered.callable), guards)
    return CompiledSegment(guards, (None,) * unguarded, function, traced.repeats, lowered.refused)


def _function(traced: TracedSegment, names: Sequence[str], graph: Any, owner: object) -> Any:
    after = [*traced.effects, f"return {traced.result}"]
    loaded = [line.partition(" = ")[0] for line in traced.loads]
    unused = [
        name for name in (*names, *loaded) if not any(refers_to(line, name) for line in after)
    ]

    lines = [
        f"[{', '.join(names)}] = given",
        "given.clear()",
        *traced.loads,
        f"inputs = [{', '.join(traced.inputs)}]",
        f"del {', '.join(unused)}" if unused else "pass",
        "g = graph(inputs)",
        *after,
    ]
    text = function_text("segment", ("given",), lines)
    filename = f"<stator backward segment {next(_numbers)}>"
    return load_source(text, filename, {**traced.objects, "graph": graph}, owner)["segment"]


def text_of(source: Source) -> str:
    """Return the text of an argument, or of one of its sizes."""
    return _renderer.value(source)


class _ArgumentRenderer:
    """Renders arguments and their sizes, which need no constants."""

    kinds: frozenset[type] = frozenset()

    def value(self, source: Source) -> str:
        return source.name if isinstance(source, ParameterSource) else source.expression(self)

    def arguments(self, sources: Sequence[Source]) -> str:
        return ", ".join(map(self.value, sources))

    def capture(self, obj: object, hint: str) -> str:
        raise InternalError(f"a segment needs the constant {hint}")

    def once(self, key: object, make: Callable[[], object]) -> object:
        return make()


_renderer = _ArgumentRenderer()
