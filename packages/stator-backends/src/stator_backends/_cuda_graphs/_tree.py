"""The state machine: which recording serves a call, and when a path ends.

warm-up     the first call of a graph runs normally
recording   no child of the current recording accepts the call: record one
replay      a child accepts it; it becomes the current recording
new step    what is alive moves out of the pool, the next call starts at the root
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from attrs import Factory, define, frozen

from stator_backends._backend import BoxedRun
from stator_backends._cuda_graphs._device import GraphDevice
from stator_backends._cuda_graphs._node import PassedInput, PoolResult, Recording

LIMIT = 64
"""The number of recordings of one graph; calls beyond it run normally."""


@frozen(eq=False)
class RecordableGraph:
    """A compiled graph that takes a list. `static`: the positions of inputs that keep their address
    from call to call."""

    number: int
    run: BoxedRun
    static: frozenset[int] = frozenset()


@define(eq=False)
class RecordingTree:
    """The recordings of one device; one thread at a time is inside.

    `step` gives the number of the present step.
    """

    device: GraphDevice
    step: Callable[[], object]
    roots: dict[int, list[Recording]] = Factory(dict)
    path: list[Recording] = Factory(list)
    counts: Counter[int] = Factory(Counter)  # recordings by graph
    _begun: object = None
    _warm: set[int] = Factory(set)
    _lock: Any = Factory(threading.RLock)

    def call(self, function: RecordableGraph, inputs: list[Any]) -> Sequence[Any]:
        """Run a graph, by a recording if possible. `inputs` is emptied."""
        with self._lock:
            self._begin_step()
            if function.number not in self._warm:
                self._warm.add(function.number)
                return function.run(inputs)

            alive = self._alive()
            if not alive:
                self.path.clear()
            siblings = self._children().setdefault(function.number, [])
            accepting = (one for one in siblings if one.accepts(self.device, inputs, alive))
            recording = next(accepting, None)
            if recording is None:
                if self.counts[function.number] >= LIMIT:
                    return function.run(inputs)
                recording = self._recorded(function, inputs, alive)
                siblings.append(recording)

            self.path.append(recording)
            given = list(inputs)
            inputs.clear()
            return recording.replay(self.device, given)

    def reset(self) -> None:
        """Discard all recordings; what is alive moves out of the pool."""
        with self._lock:
            self._end_path()
            self.roots.clear()
            self.counts.clear()
            self._warm.clear()

    def _begin_step(self) -> None:
        now = self.step()
        if now != self._begun:
            self._begun = now
            self._end_path()

    def _end_path(self) -> None:
        for result in self._alive():
            result.move_out(self.device)
        self.path.clear()

    def _alive(self) -> frozenset[PoolResult]:
        """Return the results of the path that the program still uses."""
        results = (result for recording in self.path for result in recording.tensors)
        return frozenset(result for result in results if result.is_alive(self.device))

    def _children(self) -> dict[int, list[Recording]]:
        return self.path[-1].children if self.path else self.roots

    def _recorded(
        self, function: RecordableGraph, inputs: Sequence[Any], alive: frozenset[PoolResult]
    ) -> Recording:
        """Record a call while the pool owns exactly what is alive."""
        device, live = self.device, [result.tensor for result in alive]
        managed = {result.address for result in alive if result.address is not None}
        buffers, fixed = self._placed(function, inputs, managed)
        chosen = [
            value if buffer is None else buffer
            for value, buffer in zip(inputs, buffers, strict=True)
        ]
        if self.path:
            dead = self.path[-1].addresses - managed
            device.restore(self.path[-1].state, live, sorted(dead))

        try:
            graph, outputs, state = device.record(function.run, chosen)
        finally:
            device.release(live)

        self.counts[function.number] += 1
        results = self._results(outputs, chosen)
        return Recording(graph, tuple(buffers), tuple(fixed), alive, results, state)

    def _placed(
        self, function: RecordableGraph, inputs: Sequence[Any], managed: set[int]
    ) -> tuple[list[Any], list[int | None]]:
        """Return, for each input, a buffer or the address that it keeps."""
        buffers: list[Any] = []
        fixed: list[int | None] = []
        for position, value in enumerate(inputs):
            is_tensor = self.device.is_tensor(value)
            address = self.device.address(value) if is_tensor else None
            stays = position in function.static or address in managed
            fixed.append(address if stays else None)
            buffers.append(self.device.buffer(value) if is_tensor and not stays else None)
        return buffers, fixed

    def _results(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Cache the results that have memory of their own in the pool."""
        device = self.device
        positions = {id(value): at for at, value in enumerate(inputs) if device.is_tensor(value)}
        outside = {device.address(inputs[at]) for at in positions.values()}
        owners = Counter(device.address(value) for value in outputs if device.is_tensor(value))

        made: list[Any] = []
        for value in outputs:
            if not device.is_tensor(value):
                made.append(value)
            elif id(value) in positions:
                made.append(PassedInput(positions[id(value)]))
            else:
                address = device.address(value)
                place = None if address in outside else address
                is_alone = place is not None and owners[address] == 1
                made.append(PoolResult(value, place, is_alone))
        return tuple(made)
