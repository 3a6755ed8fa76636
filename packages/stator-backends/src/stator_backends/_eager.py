"""The backends that compile nothing: the graph's own generated Python function, and AOTAutograd in
between."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import attrs
from torch.fx import GraphModule
from torch.fx.graph import _BoxedCodeGen

from ._backend import BackendSpec, Compiled, FunctionBackend


def graph_function(gm: GraphModule, example_inputs: Sequence[object] = ()) -> Compiled:
    """The bound `forward`, which skips the hooks machinery of `Module.__call__`: about 2 us less a
    call."""
    real_recompile = getattr(gm, "real_recompile", None)
    # a lazy graph module generates code at its first call; that is now
    if real_recompile is not None:
        real_recompile()
    forward: Compiled = gm.forward
    return forward


eager = FunctionBackend(graph_function, BackendSpec("eager", compiles=False))


# AOTAutograd with nothing behind it: the graph is functionalised, differentiated and split, and
# then run eagerly.
#
# The backend to try when a compiler gives a wrong result: a fault that shows here is not the
# compiler's.


def run_boxed(gm: GraphModule, example_inputs: Sequence[object]) -> Compiled:
    """The graph as a function of one list, which it empties: inputs of a backward die as soon as
    they were used."""
    gm.graph.set_codegen(_BoxedCodeGen())
    gm.recompile()
    forward = gm.forward

    def run(args: list[Any]) -> Sequence[Any]:
        return forward(args)  # type: ignore[no-any-return]  # generated code, not annotated

    # how AOTAutograd recognises the calling convention
    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _default_partition() -> Callable[..., Any]:
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition


def _inductor_partition() -> Callable[..., Any]:
    return functools.partial(_default_partition(), compiler="inductor")


def _inductor_decompositions() -> dict[Any, Any] | None:
    from torch._inductor.decomposition import select_decomp_table

    return select_decomp_table()


AOT_EAGER = BackendSpec("aot_eager")


@attrs.frozen
class AotEager:
    """AOTAutograd over eager kernels. The factories defer imports that take a second to the first
    compile."""

    spec: BackendSpec = AOT_EAGER
    partition: Callable[[], Callable[..., Any]] = _default_partition
    decompositions: Callable[[], dict[Any, Any] | None] = lambda: None
    # of the forward and of the backward graph
    compilers: tuple[Callable[..., Any], Callable[..., Any]] = (run_boxed, run_boxed)

    def __call__(self, gm: GraphModule, example_inputs: Sequence[object]) -> Compiled:
        from torch._functorch.aot_autograd import aot_module_simplified
        from torch._inductor import config

        # else numbers that nobody uses are not drawn, and the next are others
        with config.patch(fallback_random=True):
            return aot_module_simplified(
                gm,
                example_inputs,
                fw_compiler=self.compilers[0],
                bw_compiler=self.compilers[1],
                partition_fn=self.partition(),
                decompositions=self.decompositions(),
                keep_inference_input_mutations=True,
            )


aot_eager = AotEager()

# Inductor's view of the graph without Inductor's kernels: it distinguishes a faulty decomposition
# from a faulty kernel.
aot_eager_decomp_partition = AotEager(
    BackendSpec("aot_eager_decomp_partition"), _inductor_partition, _inductor_decompositions
)
