"""`bisect`: the first layer below a function that changes its result, and the smallest graph for
which it does.

    print(stator.bisect(f, (x,)))
    # captured: the same
    # aot_eager: the same
    # aot_eager_decomp_partition: the same
    # inductor: wrong: the values of the result[0]: ...
    # 2 operators show it: /tmp/.../minified_3f.py
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
from stator._settings._options import make_options
from stator._subject import compiled
from stator.errors import InvalidUse, backend_boundary

LAYERS = ("eager", "aot_eager", "aot_eager_decomp_partition")
"""The backends below the compilers, from the top: capture, AOTAutograd, decompositions."""


@attrs.frozen(eq=False)
class Bisection:
    """The layers in their order, up to the first that differs: each with the difference, which is
    empty if it did what the plain function did.

    `reduced` is the smallest graph on which that layer has the fault, and `script` shows it;
    `note` is the reason why there is none.
    """

    layers: tuple[tuple[str, str], ...]
    reduced: Minified | None = None
    script: Path | None = None
    note: str = ""

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
) -> Bisection:
    """Run a function plainly, captured, under AOTAutograd, with decompositions and with backends.

    Each run has copies of `f`, if it is a module, and of the arguments. Compared are the result,
    the arguments and gradients, at the given accuracy: a key of `stator_backends.ACCURACY`. The
    search ends at the first layer that differs; the graph is reduced and written to `folder`.
    """
    if accuracy not in ACCURACY:
        raise InvalidUse(f"no accuracy is called {accuracy!r}", f"there are: {', '.join(ACCURACY)}")
    case = _Case(f, args, kwargs or {}, accuracy)
    expected = case.run(f)
    results: list[tuple[str, str]] = []
    for layer in (*LAYERS, *backends):
        with backend_boundary():
            backend = lookup(layer)
        difference = case.difference(expected, backend)
        results.append((spec_of(backend).name, difference))
        if difference:
            return _with_graph(case, backend, tuple(results), folder)
    return Bisection(tuple(results))


def _with_graph(
    case: _Case, backend: Backend, layers: tuple[tuple[str, str], ...], folder: str | Path | None
) -> Bisection:
    """Reduce the first graph on which the backend has a fault."""
    if backend is eager:
        note = "capture differs from the plain function: options={'oracle': True} names the line"
        return Bisection(layers, note=note)
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

    def run(self, f: Callable[..., Any], backend: Backend | None = None) -> Any:
        """Call the function, plainly without a backend; return everything that it changed."""
        f, args, kwargs = copy.deepcopy((f, list(self.args), dict(self.kwargs)))
        subject = f if backend is None else _compiled(f, backend)
        with preserved_rng():
            result = subject(*args, **kwargs)
            _differentiate(result)
        state = f if isinstance(f, torch.nn.Module) else None
        return {"the result": result, "the arguments": (args, kwargs), "the module": state}

    def difference(self, expected: Any, backend: Backend) -> str:
        """Return how a run with this backend differs; empty if it does not."""
        try:
            found = self.run(self.f, backend)
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


def _compiled(f: Any, backend: Backend) -> Any:
    return compiled(f, make_options(backend, isolate_recompiles=True))


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
