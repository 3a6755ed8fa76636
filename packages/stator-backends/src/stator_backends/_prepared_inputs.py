"""Inputs of a graph that another thread compiles while the program goes on.

The program may write to its tensors by then, or give them another shape; so what a compiler sees of
them is made when the graph is captured, and refers to no tensor of the program:

    prepared = prepare_inputs(gm, inputs, backend, fake_mode)     # in the call
    lower(gm, prepared.inputs, backend, fake_mode=fake_mode, prepared=prepared)    # in a thread

A thread must not change either what the whole process shares: a stream of random numbers that it
put back would repeat numbers that the program has drawn meanwhile. What a compiler needs of such
state is the reason for `can_be_compiled_later`.
"""

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from attrs import field, frozen
from torch import Tensor
from torch._functorch import config as functorch_config
from torch._guards import TracingContext
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule

from . import _session
from ._alias import AliasLayout, InputGuard, writes_to_inputs
from ._backend import Backend, BackendSpec, spec_of
from ._compiler_inputs import record_contexts, with_symbols
from ._context import attach_sources, cleared
from ._graph_facts import example_of, has_lstm, placeholders
from ._step import uses_steps


@frozen(eq=False)
class PreparedInputs:
    """The inputs of a graph, fake where they are tensors, and the guard on the memory that they
    share."""

    inputs: list[Any]
    guards: tuple[InputGuard, ...]
    ids: frozenset[int] = field(init=False)

    @ids.default
    def _ids(self) -> frozenset[int]:
        return frozenset(id(value) for value in self.inputs if isinstance(value, Tensor))


def prepare_inputs(
    gm: GraphModule,
    example_inputs: Sequence[object],
    fake_mode: FakeTensorMode,
    *,
    contexts: Mapping[Tensor, Any],
    add_fake_kernels: Callable[[FakeTensorMode], None] | None = None,
    hides_floats: bool = False,
) -> PreparedInputs:
    """Make the inputs fake, and describe the memory that they share now.

    The options are those of `lower`.
    """
    inputs = with_symbols(gm, example_inputs)
    guards = tuple(layout_guards(gm, inputs))
    attach_sources(gm)

    context = TracingContext(None)
    with cleared(fake_mode, context):
        context.fake_mode = FakeTensorMode(shape_env=fake_mode.shape_env)
        if add_fake_kernels is not None:
            add_fake_kernels(context.fake_mode)
        record_contexts(gm, inputs, _TAKES_FAKES, context, contexts, hides_floats)
    return PreparedInputs(inputs, guards)


_TAKES_FAKES = BackendSpec("prepared", fake_inputs=True)


def layout_guards(gm: GraphModule, inputs: Sequence[Any]) -> list[InputGuard]:
    """Return a guard on the memory that inputs share, if the graph writes to one of several."""
    examples = [example_of(node) for node in placeholders(gm)]
    if sum(isinstance(value, Tensor) for value in inputs) < 2 or not writes_to_inputs(examples):
        return []
    return [AliasLayout.of(inputs)]


def can_be_compiled_later(gm: GraphModule, backend: Backend) -> bool:
    """Return False for a backend that looks at real inputs or draws random numbers, and for a graph
    during whose compilation state of the whole process has to be another one."""
    if uses_steps(backend) or spec_of(backend).wants_graph_spec:
        return False
    if getattr(backend, "compiles_in_call", False):
        return False
    return not (torch.is_grad_enabled() and has_lstm(gm))


def inside_call() -> Iterator[AbstractContextManager[None]]:
    """Yield what keeps the effects of a compiler from the program whose call waits for it."""
    yield _session.preserved_rng()
    yield _session.preserved_hook_ids()
    yield _session.harmless_warnings()


def beside_calls() -> Iterator[AbstractContextManager[None]]:
    """Yield the same for a compiler in a thread of its own, beside the program.

    The backward is compiled as well, which would otherwise be done by the first one.
    """
    yield _muted_thread()
    yield functorch_config.patch(force_non_lazy_backward_lowering=True)


@contextmanager
def _muted_thread() -> Iterator[None]:
    """Ignore the warnings of this thread. Filters belong to the process, and `catch_warnings` would
    put back those of the program as they were."""
    thread = _ThisThread(threading.get_ident())
    muted: Any = "ignore", None, Warning, thread, 0
    warnings.filters.insert(0, muted)  # type: ignore[attr-defined]
    warnings._filters_mutated()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        thread.idents.clear()
        _remove(warnings.filters, muted)
        warnings._filters_mutated()  # type: ignore[attr-defined]


def _remove(filters: Any, muted: Any) -> None:
    if muted in filters:
        filters.remove(muted)


class _ThisThread:
    """The module of a warnings filter, which applies to one thread. A list of filters that the
    program has saved meanwhile keeps it: it matches nothing when the thread is done."""

    def __init__(self, ident: int) -> None:
        self.idents = {ident}

    def match(self, module: str) -> bool:
        return threading.get_ident() in self.idents
