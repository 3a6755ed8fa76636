"""`bisect`: the first layer below a function that changes its result, and the smallest graph for
which it does.

    print(stator.bisect(f, (x,)))
    # captured: the same
    # aot_eager: the same
    # aot_eager_decomp_partition: the same
    # inductor: wrong: the values of the result[0]: ...
    # 2 operators show it: /tmp/.../minified_3f.py

Where the capture differs, the handlers at fault are searched for: the smallest set of captures
without which the function does what it should.

    # captured: wrong: the result[0]: plain 2, here 3
    # without the capture 'builtin.values' it does the same: options={'without': ['builtin.values']}
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import torch
from stator_backends import (
    ACCURACY,
    Backend,
    BackendSpec,
    FaultCheck,
    Minified,
    NoFault,
    SavedGraph,
    eager,
    lookup,
    minify_to,
    preserved_rng,
    recording_first_call,
    spec_of,
)
from torch.utils._pytree import tree_leaves

from stator._oracle_mode._comparison import Comparison
from stator._settings._captures import ALL, names_of
from stator._settings._options import make_options
from stator._settings._stack import Stack
from stator._subject import compiled
from stator.errors import InvalidUse, backend_boundary

LAYERS = ("eager", "aot_eager", "aot_eager_decomp_partition")
"""The backends below the compilers, from the top: capture, AOTAutograd, decompositions."""


@attrs.frozen(eq=False)
class Bisection:
    """The layers in their order, up to the first that differs: each with the difference, which is
    empty if it did what the plain function did.

    `reduced` is the smallest graph on which that layer has the fault, and `script` shows it;
    `note` is the reason why there is none. `captures` are those without which the function is
    captured rightly, where a capture has the fault.
    """

    layers: tuple[tuple[str, str], ...]
    reduced: Minified | None = None
    script: Path | None = None
    note: str = ""
    captures: tuple[str, ...] = ()

    @property
    def first(self) -> str | None:
        """The name of the first layer that differs."""
        return next((name for name, difference in self.layers if difference), None)

    def __str__(self) -> str:
        lines = [f"{name}: {difference or 'the same'}" for name, difference in self.layers]
        if self.reduced is not None:
            lines.append(f"{self.reduced.ops} operators show it: {self.script}")
        return "\n".join([*lines, *([self.note] if self.note else [])])


def bisect(
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    backends: Sequence[str | Backend] = ("inductor",),
    accuracy: str = "default",
    folder: str | Path | None = None,
    stack: Stack | None = None,
) -> Bisection:
    """Run a function plainly, captured, under AOTAutograd, with decompositions and with backends.

    Each run has copies of `f`, if it is a module, and of the arguments. Compared are the result,
    the arguments and gradients, at the given accuracy: a key of `stator_backends.ACCURACY`. The
    search ends at the first layer that differs; the graph is reduced and written to `folder`, or
    the captures at fault are named.
    """
    if accuracy not in ACCURACY:
        raise InvalidUse(f"no accuracy is called {accuracy!r}", f"there are: {', '.join(ACCURACY)}")
    case = _Case(f, args, kwargs or {}, accuracy, stack or Stack())
    expected = case.run(f)
    results: list[tuple[str, str]] = []
    for layer in (*LAYERS, *backends):
        with backend_boundary():
            backend = lookup(layer)
        difference = case.difference(expected, backend)
        results.append((spec_of(backend).name, difference))
        if difference and backend is eager:
            return _with_captures(case, expected, tuple(results))
        if difference:
            return _with_graph(case, backend, tuple(results), folder)
    return Bisection(tuple(results))


def _with_captures(case: _Case, expected: Any, layers: tuple[tuple[str, str], ...]) -> Bisection:
    """Name the captures without which the function is captured rightly."""

    def is_right_without(names: Sequence[str]) -> bool:
        return not case.difference(expected, eager, names)

    if not is_right_without([ALL]):
        note = (
            "capture differs from the plain function, also without handlers: "
            "options={'oracle': True} names the line"
        )
        return Bisection(layers, note=note)
    found = smallest_sufficient(names_of(case.stack.tables()), is_right_without)
    kind = "capture" if len(found) == 1 else "captures"
    named = ", ".join(map(repr, found))
    note = f"without the {kind} {named} it does the same: options={{'without': [{named}]}}"
    return Bisection(layers, note=note, captures=found)


def smallest_sufficient(
    names: Sequence[str], is_sufficient: Callable[[Sequence[str]], bool]
) -> tuple[str, ...]:
    """Return some of these names that are sufficient together, as all of them are.

    Each round finds the last name of the shortest sufficient beginning, by halving: that one is
    needed, and those behind it are not.
    """
    needed: list[str] = []
    while names and not is_sufficient(needed):
        too_few, enough = 0, len(names)
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if is_sufficient([*needed, *names[:middle]]):
                enough = middle
            else:
                too_few = middle

        needed.append(names[enough - 1])
        names = names[: enough - 1]
    return tuple(sorted(needed))


def _with_graph(
    case: _Case, backend: Backend, layers: tuple[tuple[str, str], ...], folder: str | Path | None
) -> Bisection:
    """Reduce the first graph on which the backend has a fault."""
    where = Path(folder or tempfile.mkdtemp(prefix="stator_bisect_"))
    where.mkdir(parents=True, exist_ok=True)
    for number, graph in enumerate(case.graphs()):
        path = where / f"graph_{number}.py"
        try:
            reduced = minify_to(graph, backend, FaultCheck(case.accuracy), "capture", path)
        except NoFault:
            continue
        return Bisection(layers, reduced, path)
    return Bisection(layers, note="no graph shows it alone: look at what lies between the graphs")


@attrs.frozen(eq=False)
class _Case:
    """The function and its arguments; each run works on copies."""

    f: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    accuracy: str
    stack: Stack

    def run(
        self,
        f: Callable[..., Any],
        backend: Backend | None = None,
        without: Sequence[str] = (),
    ) -> Any:
        """Call the function, plainly without a backend; return everything that it changed."""
        f, args, kwargs = copy.deepcopy((f, list(self.args), dict(self.kwargs)))
        subject = f if backend is None else self._compiled(f, backend, without)
        with preserved_rng():
            result = subject(*args, **kwargs)
            _differentiate(result)
        state = f if isinstance(f, torch.nn.Module) else None
        return {"the result": result, "the arguments": (args, kwargs), "the module": state}

    def _compiled(self, f: Any, backend: Backend, without: Sequence[str]) -> Any:
        options = {"without": list(without)}
        chosen = make_options(backend, options=options, stack=self.stack, isolate_recompiles=True)
        return compiled(f, chosen)

    def difference(self, expected: Any, backend: Backend, without: Sequence[str] = ()) -> str:
        """Return how a run with this backend differs; empty if it does not."""
        try:
            found = self.run(self.f, backend, without)
        except Exception as error:  # whatever a layer raises is its fault
            return f"{type(error).__name__}: {error}"
        tolerance = ACCURACY[self.accuracy]
        if tolerance is None:
            return ""
        comparison = Comparison(tolerance)
        for name, value in expected.items():
            for where, left, right in comparison.differences(value, found[name], name):
                return f"{where}: plain {left}, here {right}"
        return ""

    def graphs(self) -> list[SavedGraph]:
        """Run the function and return its graphs, each with the inputs of its first call."""
        recorder = FirstCallRecorder()
        self.run(self.f, recorder)
        return recorder.graphs


def _differentiate(result: object) -> None:
    """Run backward from every tensor of a result that has a history."""
    tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    roots = [tensor for tensor in tensors if tensor.grad_fn is not None]
    if roots:
        torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])


RECORDER = BackendSpec("recorder", compiles=False)


@attrs.define(eq=False)
class FirstCallRecorder:
    """The backend that runs each graph eagerly and keeps it with the inputs of its first call."""

    graphs: list[SavedGraph] = attrs.field(factory=list)
    spec: BackendSpec = RECORDER

    def __call__(
        self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        kept = copy.deepcopy(gm)
        keep = self.graphs.append
        run = eager(gm, example_inputs)
        return recording_first_call(run, lambda inputs: keep(SavedGraph(kept, inputs)))
