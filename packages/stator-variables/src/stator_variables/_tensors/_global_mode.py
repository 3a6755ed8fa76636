"""Global modes that are set while tracing.

A mode that is set is really set, and the setter becomes a node, so that fake tensors and the graph
come out right. The journal puts it back on a rollback, and the end of the trace does; the entry
sets the final value when it runs.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import attrs
import torch

from stator_variables._space import Space
from stator_variables._tensors import _torch_state as state
from stator_variables._trace._capture_state import ModeState, Phase
from stator_variables._trace._graph import GraphValue


@attrs.frozen
class Setting:
    """One mode: `read(*key)` gives its value, `write(*key, value)` sets it; `key` is the device
    type of autocast's.

    The value of a setter that takes several is a tuple, the last of which may be `named`.
    """

    read: Callable[..., Any]
    write: Callable[..., Any]
    text: str
    key: tuple[Any, ...] = ()
    named: tuple[str, ...] = ()
    # False: the mode comes from what an operator's body runs in
    is_node: bool = attrs.field(default=True, eq=False)

    @property
    def now(self) -> Any:
        return self.read(*self.key)

    def set(self, value: object) -> None:
        given, named = self.arguments(value)
        self.write(*given, **named)

    def arguments(self, value: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of `write` that set `value`."""
        values = value if type(value) is tuple else (value,)
        count = len(values) - len(self.named)
        named = dict(zip(self.named, values[count:], strict=True))
        return (*self.key, *values[:count]), named

    def statement(self, value: object, capture: Callable[[Any, str], str]) -> str:
        given, named = self.arguments(value)
        written = [_written(each, capture) for each in given]
        written += [f"{name}={_written(each, capture)}" for name, each in named.items()]
        return f"{capture(self.write, self.text)}({', '.join(written)})"


def _written(value: object, capture: Callable[[Any, str], str]) -> str:
    return repr(value) if type(value) in (bool, int, str) else capture(value, "mode")


@attrs.define(eq=False)
class GlobalModes(ModeState):
    """The settings that were written while tracing."""

    phase: ClassVar[Phase] = Phase.MODES

    starts: dict[Setting, Any] = attrs.Factory(dict)
    """Their values at the start."""
    is_sealed: bool = False
    """A compiler can take no further operator into the graph."""
    are_set: frozenset[Setting] = frozenset()
    """The settings that the entry has set when it comes to the others."""

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        here = {setting: setting.now for setting in self.starts}
        for setting, start in self.starts.items():
            setting.set(start)
        try:
            yield
        finally:
            for setting, now in here.items():
                setting.set(now)

    def restore(self) -> None:
        for setting, before in reversed(self.starts.items()):
            if setting.now != before:
                setting.set(before)

    def emit(self, e: Any) -> None:
        """Set those whose value differs from the start, but those that are set already."""
        others = {setting: setting.now for setting in self.starts if setting not in self.are_set}
        e.lines += [
            setting.statement(value, e.capture)
            for setting, value in others.items()
            if value != self.starts[setting]
        ]

    def moment(self) -> tuple[Any, ...] | None:
        return None if self.is_sealed else (len(self.starts), *self.kept_by_body())

    def kept_by_body(self) -> tuple[Any, ...]:
        found = [(setting, setting.now) for setting in self.starts]
        return tuple((each, now) for each, now in found if now != self.starts[each])

    def bound_to_process(self) -> str:
        return ""


def put(t: Space, setting: Setting, value: object, inference: bool | None = None) -> None:
    """Set a mode, as a node of the graph and for real. In inference mode (by default: as it is)
    nothing gets gradients, whatever their mode; to the graph it is that mode."""
    before = setting.now
    t.state(GlobalModes).starts.setdefault(setting, before)
    if setting.is_node:
        off = setting == GRAD and (
            torch.is_inference_mode_enabled() if inference is None else inference
        )
        given, named = setting.arguments(False if off else value)
        _seal(t, t.graph.call(setting.write, given, named))
    setting.set(value)
    t.journal.record(lambda: setting.set(before))


def _seal(t: Space, setter: GraphValue) -> None:
    """Take no operator any more behind a setter of state that kernels read, where a compiler would
    not keep its place.

    Setters before or after all operators run outside of what a compiler makes.
    """
    if (
        t.policy.runs_in_order
        or t.policy.is_whole
        or not state.sets_state_of_kernels(setter.node.target)
    ):
        return
    calls = (node.target for node in setter.node.graph.nodes if node.op.startswith("call_"))
    if not all(target in state.SETTERS for target in calls):
        t.journal.assign(t.state(GlobalModes), is_sealed=True)


_GRAD_OF_A_BODY = Setting(
    torch.is_grad_enabled, torch._C._set_grad_enabled, "_set_grad_enabled", is_node=False
)


@contextlib.contextmanager
def grad_mode(t: Space, enabled: bool) -> Iterator[None]:
    """Grad mode as an operator has it around its body. What fails inside takes it back with all
    else."""
    before = torch.is_grad_enabled()
    if enabled != before:
        put(t, _GRAD_OF_A_BODY, enabled)
    yield
    if enabled != before:
        put(t, _GRAD_OF_A_BODY, before)


GRAD = Setting(torch.is_grad_enabled, torch._C._set_grad_enabled, "_set_grad_enabled")


# -- the depth of nested autocast contexts ---------------------------------------------------------
def nesting() -> int:
    torch.autocast_increment_nesting()
    return int(torch.autocast_decrement_nesting())


def _set_nesting(depth: int) -> None:
    while nesting() < depth:
        torch.autocast_increment_nesting()
    while nesting() > depth:
        torch.autocast_decrement_nesting()


NESTING = Setting(nesting, _set_nesting, "set_autocast_nesting", is_node=False)
