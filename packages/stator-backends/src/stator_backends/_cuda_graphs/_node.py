"""One recording: the conditions under which it may be replayed, and its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import Factory, define, frozen

from stator_backends._cuda_graphs._device import GraphDevice


@define(eq=False)
class PoolResult:
    """One result of a recording.

    `cached`: the caller is given an alias of `tensor`, which lies in the pool, so no replay may
    come while it is used. Otherwise the caller is given a copy: of results that share memory, and
    of those that outlived a step once. `address` is None outside the pool, in memory of an input.
    """

    tensor: Any
    address: int | None
    cached: bool

    def is_alive(self, device: GraphDevice) -> bool:
        return self.cached and device.is_used(self.tensor)

    def move_out(self, device: GraphDevice) -> None:
        """Let those who use it keep it while the pool uses its memory."""
        self.tensor = device.move_out(self.tensor)
        self.cached = False


@frozen
class PassedInput:
    """A result that is an input: the caller is given its own tensor back."""

    position: int


@define(eq=False)
class Recording:
    """A recording of one graph after the recordings on its path.

    `buffers` are the inputs that each call is copied into, None at those whose address is fixed;
    `fixed` has the addresses of the latter. `alive` are the results of the path that were alive
    when it was recorded: its memory does not include theirs, and may include that of the others.
    """

    graph: Any
    buffers: tuple[Any, ...]
    fixed: tuple[int | None, ...]
    alive: frozenset[PoolResult]
    results: tuple[PoolResult | PassedInput | Any, ...]  # others are constants
    state: Any
    children: dict[int, list[Recording]] = Factory(dict)

    @property
    def tensors(self) -> list[PoolResult]:
        return [result for result in self.results if isinstance(result, PoolResult)]

    @property
    def addresses(self) -> set[int]:
        """The addresses in the pool that are allocated in `state`."""
        found = (result.address for result in (*self.alive, *self.tensors))
        return {address for address in found if address is not None}

    def accepts(
        self, device: GraphDevice, inputs: Sequence[Any], alive: frozenset[PoolResult]
    ) -> bool:
        """Return True if a replay would overwrite nothing that is alive, and read these inputs."""
        addresses = zip(inputs, self.fixed, strict=True)
        is_at = (fixed is None or device.address(value) == fixed for value, fixed in addresses)
        return alive <= self.alive and all(is_at)

    def replay(self, device: GraphDevice, inputs: Sequence[Any]) -> list[Any]:
        """Run the recording on these inputs; return the results of this call."""
        for buffer, value in zip(self.buffers, inputs, strict=True):
            if buffer is not None:
                device.write(buffer, value)
        device.replay(self.graph)
        return [_given(device, result, inputs) for result in self.results]


def _given(device: GraphDevice, result: Any, inputs: Sequence[Any]) -> Any:
    """Return what the caller is given for one result."""
    if isinstance(result, PassedInput):
        return inputs[result.position]
    if not isinstance(result, PoolResult):
        return result
    give = device.alias if result.cached else device.copy
    return give(result.tensor)
