"""A backend that divides graphs as another one does, and compiles nothing: to see what of a graph
would be compiled.

    lowered = lower(gm, inputs, without_compiler(inductor), fake_mode=fake_mode)
    lowered.uncompiled    # the same operators as with `inductor` itself, in a fraction of the time
"""

from collections.abc import Sequence
from typing import Any

import attrs
from torch.fx import GraphModule

from ._backend import Backend, BackendSpec, Compiled, spec_of
from ._eager import AotEager, aot_eager_decomp_partition
from ._step import uses_steps


def without_compiler(backend: Backend) -> Backend:
    """Return a backend for which graphs are divided as they are for the given one, and which runs
    what it is given.

    What AOTAutograd refuses is a reason to divide a graph, so AOTAutograd runs; a backend of which
    nothing but its capabilities is known is expected to use it. One that compiles nothing is
    returned as it is.
    """
    return WithoutCompiler(backend) if spec_of(backend).compiles else backend


@attrs.frozen(eq=False)
class WithoutCompiler:
    """AOTAutograd with nothing behind it, under the name and the capabilities of another
    backend."""

    backend: Backend

    @property
    def spec(self) -> BackendSpec:
        return attrs.evolve(spec_of(self.backend), boxed=False)

    @property
    def uses_steps(self) -> bool:
        return uses_steps(self.backend)

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any], **facts: Any) -> Compiled:
        """Run the graph as AOTAutograd hands it to Inductor, or as it hands it to others."""
        is_inductor = self.spec.name == "inductor"
        autograd = aot_eager_decomp_partition if is_inductor else AotEager()
        return autograd(gm, example_inputs)
