"""Tracing a target again, as it was traced before, up to one instruction."""

import attrs
from stator_backends import ordinary_signal_handlers
from stator_bytecode import FlatState
from stator_variables import Policy, RetraceLimit

from stator._capture._compilation_flag import compiling
from stator._capture._trace import TraceResult, trace
from stator._program._target import Target
from stator._settings._options import Options
from stator.errors import Unsupported


@attrs.define(eq=False)
class Retrace:
    """A target with the decisions of its first trace, to be traced again up to an instruction."""

    target: Target
    options: Options
    policy: Policy

    def to(self, state: FlatState, began: int) -> TraceResult:
        """Trace up to the instruction that was the `began`-th to begin. Raises Unsupported when
        that fails."""
        reason = Unsupported("operator-error", "an operator that raised", "")
        policy = attrs.evolve(self.policy, stop=RetraceLimit(began, reason))
        with compiling(), ordinary_signal_handlers():
            traced = trace(self.target, state, self.options, policy)
        if traced.point is None or traced.reason is not reason:
            traced.captured.release()
            raise Unsupported("operator-error", "the operator was not reached again")
        return traced
