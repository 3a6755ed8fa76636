"""The tree of CUDA graphs on a device that checks every address."""

from __future__ import annotations

import itertools
import random
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import add, mul, neg
from typing import Any

import attrs
import pytest
from stator_backends._cuda_graphs._tree import LIMIT, RecordableGraph, RecordingTree

POOL = 1_000_000
"""Addresses from here on belong to the pool."""

Operation = Callable[..., int]


class FakeStorage:
    """One cell of memory; it is freed with the storage, unless it is a plain address in the
    pool."""

    def __init__(self, device: FakeGraphDevice, address: int, owned: bool) -> None:
        self.device, self.address, self.owned = device, address, owned
        self.holders = weakref.WeakSet[FakeTensor]()
        device.storages.add(self)

    @property
    def is_used(self) -> bool:
        return any(holder.given for holder in self.holders)

    def __del__(self) -> None:
        if self.owned:
            self.device.free(self.address)


class FakeTensor:
    """A handle of a storage; those that the tree gives to callers are marked."""

    def __init__(self, storage: FakeStorage, given: bool = False) -> None:
        self.storage, self.given = storage, given
        storage.holders.add(self)


@attrs.define(eq=False)
class Program:
    """What was recorded: operations over addresses."""

    steps: list[tuple[Operation, list[int], int]] = attrs.field(factory=list)


@attrs.define(eq=False)
class FakeGraphDevice:
    """`owned` are the addresses that are allocated, `values` what was written to them."""

    values: dict[int, int] = attrs.field(factory=dict)
    owned: set[int] = attrs.field(factory=set)
    storages: weakref.WeakSet[FakeStorage] = attrs.field(factory=weakref.WeakSet)
    program: Program | None = None
    replays: int = 0
    copies: int = 0
    lock: Any = attrs.field(factory=threading.RLock)

    # -- programs
    def tensor(self, value: int) -> FakeTensor:
        """Return a tensor in ordinary memory."""
        with self.lock:
            made = FakeTensor(self._allocated(0))
            self.values[made.storage.address] = value
            return made

    def compute(self, operation: Operation, *inputs: FakeTensor) -> FakeTensor:
        """Run an operation, or record it."""
        with self.lock:
            made = FakeTensor(self._allocated(0 if self.program is None else POOL))
            self._step(operation, inputs, made.storage.address)
            return made

    def store(self, tensor: FakeTensor, operation: Operation) -> None:
        """Change a tensor in place, or record that."""
        with self.lock:
            self._step(operation, [tensor], tensor.storage.address)

    def view(self, tensor: FakeTensor) -> FakeTensor:
        """Return another tensor over the same memory."""
        return FakeTensor(tensor.storage, given=self.program is None)

    def read(self, tensor: FakeTensor) -> int:
        with self.lock:
            return self._read(tensor.storage.address)

    def _step(self, operation: Operation, inputs: Sequence[FakeTensor], address: int) -> None:
        sources = [value.storage.address for value in inputs]
        if self.program is not None:
            self.program.steps.append((operation, sources, address))
            return
        self._check_ordinary([source for source in (*sources, address) if source < POOL])
        self.values[address] = operation(*map(self._read, sources))

    def _read(self, address: int) -> int:
        if address < POOL:
            self._check_ordinary([address])
        return self.values[address]

    def _check_ordinary(self, addresses: Sequence[int]) -> None:
        for address in addresses:
            assert address in self.owned, f"{address} was freed"

    def _allocated(self, start: int) -> FakeStorage:
        address = next(each for each in itertools.count(start) if each not in self.owned)
        self.owned.add(address)
        return FakeStorage(self, address, owned=True)

    def free(self, address: int) -> None:
        with self.lock:
            assert address in self.owned, f"{address} is freed twice"
            self.owned.discard(address)
            if address < POOL:
                del self.values[address]

    @property
    def pool(self) -> set[int]:
        return {address for address in self.owned if address >= POOL}

    # -- what the tree needs
    def is_tensor(self, value: object) -> bool:
        return isinstance(value, FakeTensor)

    def address(self, tensor: FakeTensor) -> int:
        return tensor.storage.address

    def buffer(self, value: FakeTensor) -> FakeTensor:
        return self.tensor(0)

    def write(self, buffer: FakeTensor, value: FakeTensor) -> None:
        with self.lock:
            self.values[buffer.storage.address] = self.read(value)

    def record(
        self, run: Callable[[list[Any]], Sequence[Any]], inputs: list[Any]
    ) -> tuple[Program, Sequence[Any], frozenset[int]]:
        with self.lock:
            program = self.program = Program()
            try:
                outputs = run(list(inputs))
            finally:
                self.program = None
            state = frozenset(self.pool)
            for value in outputs:
                if isinstance(value, FakeTensor) and value.storage.address >= POOL:
                    value.storage.owned = False
            self.owned -= state
            return program, outputs, state

    def replay(self, recording: Program) -> None:
        with self.lock:
            assert not self.pool, "the pool owns something outside of a recording"
            self.replays += 1
            for operation, sources, address in recording.steps:
                used = [one for one in self.storages if one.address == address and one.is_used]
                assert address < POOL or not used, f"{address} is overwritten while it is in use"
                self._check_ordinary([each for each in (*sources, address) if each < POOL])
                self.values[address] = operation(*map(self._read, sources))

    def restore(
        self, state: frozenset[int], live: Sequence[FakeTensor], dead: Sequence[int]
    ) -> None:
        with self.lock:
            assert not self.pool
            assert {*dead} <= state
            remaining = state - {*dead}
            assert remaining == {one.storage.address for one in live}
            self.owned |= remaining

    def release(self, live: Sequence[FakeTensor]) -> None:
        with self.lock:
            self.owned -= self.pool

    def alias(self, tensor: FakeTensor) -> FakeTensor:
        return FakeTensor(tensor.storage, given=True)

    def copy(self, tensor: FakeTensor) -> FakeTensor:
        with self.lock:
            self.copies += 1
            return self.tensor(self.read(tensor))

    def is_used(self, tensor: FakeTensor) -> bool:
        with self.lock:
            return tensor.storage.is_used

    def move_out(self, tensor: FakeTensor) -> FakeTensor:
        with self.lock:
            storage, address = tensor.storage, tensor.storage.address
            moved = self._allocated(0)
            moved.owned = False
            self.values[moved.address] = self.values[address]
            storage.address, storage.owned = moved.address, True
            return FakeTensor(FakeStorage(self, address, owned=False))


@attrs.define(eq=False)
class Machine:
    """A device, its tree and some graphs; each graph has an oracle over numbers."""

    device: FakeGraphDevice = attrs.field(factory=FakeGraphDevice)
    step: int = 0
    tree: RecordingTree = attrs.field()
    weight: FakeTensor = attrs.field()

    @tree.default
    def _tree(self) -> RecordingTree:
        return RecordingTree(self.device, lambda: self.step)

    @weight.default
    def _weight(self) -> FakeTensor:
        return self.device.tensor(3)

    def twice(self, inputs: list[Any]) -> Sequence[Any]:
        """Give two results; a value between them is freed."""
        (x,) = inputs
        inputs.clear()
        between = self.device.compute(neg, x)
        first = self.device.compute(neg, between)
        del between
        return [first, self.device.compute(lambda a: a * 2, x), 7]

    def scaled(self, inputs: list[Any]) -> Sequence[Any]:
        """Read an input that keeps its address."""
        x, weight = inputs
        return [self.device.compute(mul, x, weight), None]

    def summed(self, inputs: list[Any]) -> Sequence[Any]:
        x, y = inputs
        return [self.device.compute(add, x, y)]

    def counted(self, inputs: list[Any]) -> Sequence[Any]:
        """Write to an input that keeps its address."""
        x, weight = inputs
        self.device.store(weight, lambda a: a + 1)
        return [self.device.compute(add, x, weight)]

    def repeated(self, inputs: list[Any]) -> Sequence[Any]:
        """Give two results over one memory."""
        (x,) = inputs
        made = self.device.compute(lambda a: a - 1, x)
        return [made, self.device.view(made)]

    def passed(self, inputs: list[Any]) -> Sequence[Any]:
        """Give the input, and another tensor over its memory."""
        (x,) = inputs
        return [x, self.device.compute(neg, x), self.device.view(x)]

    def call(self, name: str, *inputs: FakeTensor) -> list[Any]:
        run, arity, static = GRAPHS[name]
        given = [*inputs[:arity], *([self.weight] if static else [])]
        function = RecordableGraph([*GRAPHS].index(name), getattr(self, run), static)
        return [*self.tree.call(function, given)]

    def expected(self, name: str, weight: int, *inputs: int) -> list[Any]:
        x, y = inputs
        results: dict[str, list[Any]] = {
            "twice": [x, x * 2, 7],
            "scaled": [x * weight, None],
            "summed": [x + y],
            "counted": [x + weight + 1],
            "repeated": [x - 1, x - 1],
            "passed": [x, -x, x],
        }
        return results[name]


GRAPHS: dict[str, tuple[str, int, frozenset[int]]] = {
    "twice": ("twice", 1, frozenset()),
    "scaled": ("scaled", 1, frozenset({1})),
    "summed": ("summed", 2, frozenset()),
    "counted": ("counted", 1, frozenset({1})),
    "repeated": ("repeated", 1, frozenset()),
    "passed": ("passed", 1, frozenset()),
}


def run_steps(machine: Machine, seed: int, count: int, submit: Callable[..., Any]) -> None:
    """Call, release, write and begin steps at random; compare with the oracle after each."""
    rng, device = random.Random(seed), machine.device
    weight, alive = 3, list[tuple[FakeTensor, list[int]]]()
    for _ in range(count):
        action = rng.choice(["call"] * 5 + ["release"] * 3 + ["step", "write", "weight"])
        if action == "call":
            chosen = [rng.choice(alive) for _ in range(2)] if alive and rng.random() < 0.6 else []
            while len(chosen) < 2:
                number = rng.randrange(100)
                chosen.append((device.tensor(number), [number]))
            name = rng.choice([*GRAPHS])
            inputs, numbers = zip(*chosen, strict=True)
            results = submit(rng, machine.call, name, *inputs)
            expected = machine.expected(name, weight, *(number[0] for number in numbers))
            weight += name == "counted"
            cells = {device.address(tensor): cell for tensor, cell in [*alive, *chosen]}
            for value, number in zip(results, expected, strict=True):
                if isinstance(value, FakeTensor):
                    cell = cells.setdefault(device.address(value), [number])
                    assert cell == [number]
                    alive.append((value, cell))
                else:
                    assert value == number
            del chosen, inputs, results, value
        elif action == "release" and alive:
            alive.pop(rng.randrange(len(alive)))
        elif action == "write" and alive:
            tensor, cell = rng.choice(alive)
            device.store(tensor, lambda a: a + 5)
            cell[0] += 5
            del tensor
        elif action == "weight":
            device.store(machine.weight, lambda a: a // 2 + 1)
            weight = weight // 2 + 1
        elif action == "step":
            machine.step += 1
            if rng.random() < 0.9:  # as in most programs, few results outlive their step
                alive.clear()
        for tensor, cell in alive:
            assert device.read(tensor) == cell[0]
        if alive:
            del tensor
        while len(alive) > 12:
            alive.pop(rng.randrange(len(alive)))


def check_memory(machine: Machine) -> None:
    """Without recordings and results, all that is left is the weight."""
    machine.tree.reset()
    assert machine.device.owned == {machine.device.address(machine.weight)}


@pytest.mark.parametrize("seed", range(5))
def test_random_steps_read_no_freed_memory_and_no_stale_result(seed: int) -> None:
    machine = Machine()
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:

        def submit(rng: random.Random, call: Callable[..., Any], *given: Any) -> Any:
            return rng.choice([first, second]).submit(call, *given).result()

        run_steps(machine, seed, 2000, submit)
    assert machine.device.replays > 500
    check_memory(machine)


def test_two_threads_at_once() -> None:
    """Each has results of its own; the memory and the steps are shared."""
    machine = Machine()

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(500):
            x = machine.device.tensor(rng.randrange(100))
            number = machine.device.read(x)
            first, second, _ = machine.call("twice", x)
            (total,) = machine.call("summed", first, second)
            machine.step += rng.random() < 0.3
            assert machine.device.read(total) == 3 * number
            assert machine.device.read(first) == number

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work, seed) for seed in (1, 2)]:
            done.result()
    check_memory(machine)


def warmed(*names: str) -> Machine:
    machine = Machine()
    for name in names:
        machine.call(name, machine.device.tensor(1), machine.device.tensor(2))
    return machine


def test_first_call_warms_up_the_second_records_the_third_replays() -> None:
    machine = warmed("twice")
    assert machine.device.replays == 0
    for number in (2, 3):
        machine.step += 1
        results = machine.call("twice", machine.device.tensor(4))
        assert [machine.device.read(value) for value in results[:2]] == [4.0, 8.0]
        assert results[0].storage.address >= POOL
        assert machine.device.replays == number - 1
        del results
    assert machine.tree.counts.total() == 1


def test_results_that_outlive_a_step_are_moved_and_copied_from_then_on() -> None:
    machine = warmed("twice")
    kept = machine.call("twice", machine.device.tensor(4))
    machine.step += 1
    again = machine.call("twice", machine.device.tensor(5))
    assert [machine.device.read(value) for value in kept[:2]] == [4.0, 8.0]
    assert kept[0].storage.address < POOL
    assert again[0].storage.address < POOL
    assert machine.device.copies == 2
    assert machine.tree.counts.total() == 1


def test_calls_of_one_step_form_a_path_of_children() -> None:
    machine = warmed("twice", "summed")
    for _ in range(3):
        machine.step += 1
        first, second, _ = machine.call("twice", machine.device.tensor(4))
        (total,) = machine.call("summed", first, second)
        assert machine.device.read(total) == 12.0
        del first, second, total
    assert machine.tree.counts.total() == 2
    (root,) = next(iter(machine.tree.roots.values()))
    ((child,),) = root.children.values()
    assert child.buffers == (None, None), "results of the path are read where they are"


def test_memory_of_dead_results_is_reused_by_children_alone() -> None:
    """A child was recorded after a result died; where the result is alive another one is."""
    machine = warmed("twice", "summed")
    first, second, _ = machine.call("twice", machine.device.tensor(4))
    one, two = machine.device.tensor(1), machine.device.tensor(2)
    del first
    machine.call("summed", one, two)
    machine.step += 1
    del second

    first, second, _ = machine.call("twice", machine.device.tensor(5))
    (total,) = machine.call("summed", one, two)
    assert [machine.device.read(value) for value in (first, second, total)] == [5.0, 10.0, 3.0]
    assert machine.tree.counts.total() == 3


def test_another_address_of_a_fixed_input_is_another_recording() -> None:
    machine = warmed("scaled")
    x = machine.device.tensor(2)
    assert machine.device.read(machine.call("scaled", x)[0]) == 6.0
    machine.step += 1
    machine.weight = machine.device.tensor(5)
    assert machine.device.read(machine.call("scaled", x)[0]) == 10.0
    assert machine.tree.counts.total() == 2


def test_past_the_limit_calls_run_normally() -> None:
    machine = warmed("summed")
    kept, x = [], machine.device.tensor(1)
    for _ in range(LIMIT + 3):
        kept += machine.call("summed", x, x)
    assert machine.tree.counts.total() == LIMIT
    assert {machine.device.read(value) for value in kept} == {2.0}


def test_failed_recording_leaves_the_pool_empty() -> None:
    machine = warmed("twice")
    kept = machine.call("twice", machine.device.tensor(1))

    def fails(inputs: list[Any]) -> Sequence[Any]:
        machine.device.compute(neg, inputs[0])
        if machine.device.program is not None:
            raise RuntimeError("cannot be recorded")
        return []

    function = RecordableGraph(99, fails)
    machine.tree.call(function, [kept[0]])
    with pytest.raises(RuntimeError, match="cannot be recorded"):
        machine.tree.call(function, [kept[0]])
    assert not machine.device.pool
    assert machine.device.read(kept[1]) == 2.0
