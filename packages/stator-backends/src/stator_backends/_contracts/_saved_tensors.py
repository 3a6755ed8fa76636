"""Tensors saved for backward: used for the last time by the backward that frees them, kept by one
that does not.

Inductor writes over what a graph has saved for itself (donated buffers), which takes less memory.
AOTAutograd refuses a backward that retains the graph then. Here such a backward gets code of its
own, which is compiled when it is first needed. So does one whose tensors hooks were given when they
were saved: a hook may have kept them.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from inspect import getclosurevars
from typing import Any

import attrs
import torch
from torch._functorch import config as functorch_config

from ._undefined_gradients import (
    note_undefined,
    positions_of_gradients,
    without_gradients,
)

_UNCACHED = {"enable_autograd_cache": False}
"""A function that comes from the cache lacks the graph of its backward pass."""


@contextmanager
def retainable_graphs(notes_undefined: bool) -> Iterator[None]:
    """Contract: `retain_graph=True` is allowed. AOTAutograd assumes that backward uses what it
    saved for the last time. With `notes_undefined`, results without gradients are left out.

    This holds for the graphs that are compiled inside.
    """
    known = {*torch.autograd.Function.__subclasses__()}
    with functorch_config.patch(_UNCACHED) if notes_undefined else nullcontext():
        yield
    for function in torch.autograd.Function.__subclasses__():
        if function not in known and hasattr(function, "_backward_impl"):
            setattr(function, "_backward_impl", staticmethod(RetainableBackward.of(function)))
            setattr(function, "forward", staticmethod(_noting_hooks(function.forward)))
            positions = positions_of_gradients(function) if notes_undefined else []
            if len(positions) > 1:
                note_undefined(function, positions)


def _noting_hooks(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the forward of a compiled function: its context gets a mark where hooks are active."""
    active = torch._C._autograd._top_saved_tensors_default_hooks

    def call(context: Any, *inputs: Any) -> Any:
        if active(True) is not None:
            context.gave_to_hooks = True
        return forward(context, *inputs)

    return call


Absent = tuple[tuple[int, ...], bool]
"""The numbers of the gradients that are undefined, and whether what was saved is left alone."""


@attrs.define(eq=False)
class RetainableBackward:
    """The backward of one compiled graph.

    `run` is AOTAutograd's, with the compiler of its code. `keeping` is the code that leaves alone
    what was saved; it is the only one for a graph whose first backward retains it.
    """

    run: Callable[[Any, list[Any]], Any]
    compiler: Any
    metadata: Any
    inner_metadata: Any
    """The one of the graph, where the function takes subclasses of tensors apart."""
    disable_amp: bool
    keeping: Callable[..., Any] | None = None
    partial: dict[tuple[tuple[int, ...], bool], Callable[..., Any] | None] = attrs.field(
        factory=dict
    )
    """The codes for some results alone, by the numbers of the others and by whether they leave
    alone what was saved; None where there is none."""

    @classmethod
    def of(cls, function: Any) -> RetainableBackward:
        run = function._backward_impl
        held = getclosurevars(run).nonlocals
        subclasses = function.maybe_subclass_metadata
        inner = function.metadata if subclasses is None else subclasses.fw_metadata
        return cls(run, held["backward_compiler"], function.metadata, inner, held["disable_amp"])

    def __call__(self, context: Any, arguments: list[Any]) -> Any:
        code = self._partial_code(context)
        if code is not None:
            return self._run(context, code, arguments)

        is_compiled = self.compiler.compiled_bw is not None
        if self._donated() and _is_kept(context):
            if is_compiled and not self._can_compile():
                return self._run(context, self.compiler.compiled_bw, self._copied(arguments))
            self.keeping = self.keeping or self._compiled()
            return self._run(context, self.keeping, arguments)

        if not is_compiled:
            if self.keeping is not None:
                return self._run(context, self.keeping, arguments)
            self._enter_metadata()
        return self.run(context, arguments)

    def _donated(self) -> Sequence[int]:
        """Return the positions of the arguments that the code of AOTAutograd writes over."""
        return self.metadata.bw_donated_idxs or ()

    def _run(self, context: Any, code: Callable[..., Any], arguments: list[Any]) -> Any:
        # with AOTAutograd, which is imported when a graph is compiled
        from torch._functorch._aot_autograd.utils import call_func_at_runtime_with_args

        context.maybe_clear_saved_tensors()
        return call_func_at_runtime_with_args(
            code, arguments, steal_args=True, disable_amp=self.disable_amp
        )

    def _copied(self, arguments: list[Any]) -> list[Any]:
        """Copy what the code writes over: it came from a cache, without what it was compiled
        from."""
        given = list(arguments)
        arguments.clear()
        for position in self._donated():
            given[position] = given[position].clone()
        return given

    def _can_compile(self) -> bool:
        return hasattr(self.compiler.lazy_backward_info, "placeholder_list")

    def _partial_code(self, context: Any) -> Callable[..., Any] | None:
        """Return the code for a call in which some results have no gradients."""
        undefined = getattr(context, "undefined", ())
        if not undefined:
            return None
        key = undefined, _is_kept(context)
        if key not in self.partial:
            info = self.compiler.lazy_backward_info
            module = without_gradients(info.bw_module, undefined)
            self.partial[key] = module and self._compiled(
                lazy_backward_info=dataclasses.replace(info, bw_module=module), once=not key[1]
            )
        return self.partial[key]

    def _compiled(self, once: bool = False, **changes: Any) -> Callable[..., Any]:
        """Compile the graph, without donated buffers unless what was saved is used `once`."""
        compiler = dataclasses.replace(
            self.compiler, compiled_bw=None, try_save_cache_entry=None, **changes
        )
        donated = self.metadata.bw_donated_idxs
        self._enter_metadata()
        try:
            with _uncached():
                code: Callable[..., Any] = compiler.get_or_compile(saved_tensors_use_once=once)
            return code
        finally:
            self.metadata.bw_donated_idxs = self.inner_metadata.bw_donated_idxs = donated

    def _enter_metadata(self) -> None:
        """Make these facts those that the compiler reads: a context has the ones of the graph that
        was compiled last."""
        context = getattr(self.compiler.lazy_backward_info, "saved_context", None)
        if context is not None and context.ddp_optimizer_ctx is None:
            context.fw_metadata = self.inner_metadata


def _is_kept(context: Any) -> bool:
    """Return True if what was saved may be needed after this backward."""
    retains: bool = torch._C._autograd._get_current_graph_task_keep_graph()
    return retains or hasattr(context, "gave_to_hooks")


def _uncached() -> AbstractContextManager[None]:
    """Keep Inductor from taking code out of its cache: the key of a graph is the same with and
    without donated buffers."""
    config: Any = sys.modules.get("torch._inductor.config")
    patched: AbstractContextManager[None] = nullcontext()
    if config is not None:
        patched = config.patch(fx_graph_cache=False, fx_graph_remote_cache=False)
    return patched
