"""What an entry stands on holds when it is there, or it is not run; and what holds is found again
by the next call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import stator
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from integration_tests.support.counting import Counting


class Changing(Counting):
    """A backend during whose work something else happens."""

    def __init__(self, change: Callable[[], object]) -> None:
        super().__init__()
        self.change = change

    def __call__(
        self, graph: torch.fx.GraphModule, inputs: list[Any], **options: Any
    ) -> Callable[..., Any]:
        self.change()
        return super().__call__(graph, inputs, **options)


def test_what_another_thread_takes_while_an_entry_is_made_is_not_there_for_the_first_run() -> None:
    settings = {"scale": 2, "shift": 1}

    def shifted(x: Tensor) -> Tensor:
        return x * settings["scale"] + settings.get("shift", 0)

    backend = Changing(lambda: settings.pop("shift", None))
    compiled = stator.compile(shifted, backend=backend)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert backend.count == 2


class Slotted:
    slot: Any
    __slots__ = ("slot",)

    def __getattr__(self, name: str) -> str:
        return f"instead of {name}"


def test_an_empty_slot_behind_getattr_is_found_empty_again() -> None:
    compiled, thing = (
        stator.compile(lambda thing, x: (thing.slot, x + 1), backend=(backend := Counting())),
        Slotted(),
    )
    for _ in range(3):
        assert compiled(thing, torch.ones(2))[0] == "instead of slot"
    assert backend.count == 1
    thing.slot = 5
    assert compiled(thing, torch.ones(2))[0] == 5
    del thing.slot
    assert compiled(thing, torch.ones(2))[0] == "instead of slot"
    assert backend.count == 1  # the second entry has an equal graph


class Flagged:
    flag: int


def flagged(x: Tensor, n: int) -> tuple[int, Tensor]:
    Flagged.flag = n
    first = Flagged.flag
    del Flagged.flag
    return first, x * 2


def test_what_a_class_holds_for_a_while_is_no_other_path_to_the_value() -> None:
    compiled = stator.compile(flagged, backend=(backend := Counting()), fullgraph=True)
    for n in (3, 5, 8, 3, 13):
        assert compiled(torch.ones(2), n)[0] == n
    assert backend.count == 1  # the second entry has an equal graph


def kernels() -> tuple[bool, ...]:
    backends = torch.backends.cuda
    return (
        backends.flash_sdp_enabled(),  # type: ignore[no-untyped-call]
        backends.mem_efficient_sdp_enabled(),  # type: ignore[no-untyped-call]
        backends.math_sdp_enabled(),  # type: ignore[no-untyped-call]
    )


def restoring(x: Tensor, log: list[Any]) -> Tensor:
    try:
        with sdpa_kernel(SDPBackend.MATH):
            log.append(kernels())
            raise ValueError(3)
    except ValueError:
        log.append(kernels())
    return x + 1


def test_modes_that_a_compiler_leaves_as_the_graph_does_are_set_back_before_the_entry_runs() -> (
    None
):
    plain: list[Any] = []
    found: list[Any] = []
    restoring(torch.ones(2), plain)
    stator.compile(restoring, backend="aot_eager")(torch.ones(2), found)
    assert found == plain
    assert kernels() == plain[-1]


def over_one_memory(array: Any, x: Tensor) -> Any:
    y = torch.from_numpy(array)
    x = x + 1
    x.add_(1)
    return x * 2, y.sum(), array.sum()


def test_a_tensor_that_was_no_input_beside_an_array_is_not_asked_for_by_guards() -> None:
    compiled = stator.compile(over_one_memory, backend=(backend := Counting()))
    counts = []
    for _ in range(3):
        array = numpy.ones(3, dtype=numpy.float32)
        assert str(compiled(array, torch.from_numpy(array))) == str(
            over_one_memory(array, torch.from_numpy(array))
        )
        counts.append(backend.count)
    assert counts == [counts[0]] * 3
