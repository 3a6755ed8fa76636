"""Running a target natively: the program itself, in place of an entry."""

from typing import Any, Protocol

import attrs
from stator_bytecode import FlatState, InnermostFrames


class Native(Protocol):
    """Whatever can run without an entry; see `Target.plain`."""

    def plain(self) -> Any: ...


@attrs.frozen(eq=False)
class Remainder:
    """The innermost frames of a continuation: their caller goes on as before, in
    `RegionRunner.dispatch`."""

    rest: InnermostFrames

    def plain(self) -> InnermostFrames:
        return self.rest


@attrs.define
class EagerFallback:
    """Result of an entry that stops before it had an effect: run `target` natively on
    `state`."""

    target: Native
    state: FlatState

    def run(self) -> Any:
        """Run the target. The state is kept neither here nor in this frame, so that its objects die
        when the program drops them."""
        plain, state = self.target.plain(), list(self.state)
        self.state = ()
        return (
            plain(*state)
            if (consume := getattr(plain, "consume", None)) is None
            else consume(state)
        )
