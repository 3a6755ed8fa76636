"""The main job: models nobody made for us give what plain Python gives, in no more graphs than
torch.compile's.

``eager`` runs the captured graph operator by operator, so its numbers must be the same bit by bit;
others reorder sums.
"""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import stator
import torch
from transformers.utils import logging as messages

from integration_tests.corpora.models import (
    FAMILIES,
    LIBRARIES,
    SHALLOW,
    ZOO,
    Item,
    make_training,
    train,
)
from integration_tests.support.counting import Counting, graphs_of_torch_compile
from integration_tests.support.description import EXACT, INDUCTOR, Tolerance
from integration_tests.support.oracle import assert_same

AOT = Tolerance(1e-4, 1e-5)
FAMILY = Tolerance(1e-4, 1e-4)
"""Sums of gradients of about 100 are added in another order."""
ON_INDUCTOR, MORE_ON_INDUCTOR = ("gpt2",), ("resnet", "llama", "vit")
DEEP = [item for item in ZOO.values() if item.depth > item.shallow]
AT_LEISURE = [  # on inductor each compiles for a minute or two on one core
    *((item, "aot_eager", AOT) for item in DEEP),
    *((ZOO[name], "inductor", INDUCTOR) for name in ON_INDUCTOR + MORE_ON_INDUCTOR),
    *((SHALLOW[name], "inductor", INDUCTOR) for name in MORE_ON_INDUCTOR),
]
RUNS = [
    *((item, "eager", EXACT) for item in ZOO.values()),
    *((item, "aot_eager", AOT) for item in SHALLOW.values()),
    *((SHALLOW[name], "inductor", INDUCTOR) for name in ON_INDUCTOR),
    *(pytest.param(*run, marks=pytest.mark.slow) for run in AT_LEISURE),
]
MODELS = [*SHALLOW.values(), *(pytest.param(item, marks=pytest.mark.slow) for item in DEEP)]


def described(part: Any) -> str:
    """What pytest calls a run: the model, how many layers of it, the backend."""
    return (
        f"{part.name}-{part.depth}"
        if isinstance(part, Item)
        else part
        if isinstance(part, str)
        else ""
    )


@pytest.fixture(autouse=True)
def _fresh() -> None:
    stator.reset()


@pytest.mark.parametrize(("item", "backend", "tolerance"), RUNS, ids=described)
def test_model_gives_what_plain_python_gives(
    item: Item, backend: str, tolerance: Tolerance
) -> None:
    """Outputs and gradients; a second call compiles nothing; another batch size is right."""
    ours, theirs, call, other = item.make_twins()
    compiled: Any = stator.compile(theirs, backend=backend)
    owners = (ours, theirs)
    assert_same(ours, compiled, lambda: call, calls=1, tolerance=tolerance, owners=owners)
    compiled_once = compiled.report.compile_count
    assert compiled_once > 0
    assert_same(ours, compiled, lambda: call, calls=1, tolerance=tolerance, owners=owners)
    assert compiled.report.compile_count == compiled_once, "the second call compiled again"
    assert_same(ours, compiled, lambda: other, calls=2, tolerance=tolerance, owners=owners)


@pytest.mark.parametrize("item", MODELS, ids=described)
def test_no_more_graphs_than_torch_compile(item: Item) -> None:
    ours, theirs, call, _ = item.make_twins()
    counting = Counting()
    compiled: Any = stator.compile(theirs, backend=counting)
    compiled(*call.args, **call.kwargs)
    assert compiled.report.graph_count == counting.count
    assert 0 < counting.count <= graphs_of_torch_compile(ours, *call.args, **call.kwargs), (
        compiled.report
    )


@pytest.mark.parametrize("item", MODELS, ids=described)
def test_training_mode_leaves_the_same_random_streams(item: Item) -> None:
    """Dropout and layer drop draw what they draw plainly; running statistics move the same way."""
    ours, theirs, call, _ = item.make_twins()
    compiled = stator.compile(theirs.train(), backend="eager")
    assert_same(ours.train(), compiled, lambda: call, calls=2, owners=(ours, theirs))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FAMILIES)
def test_family_gives_what_plain_python_gives_in_no_more_graphs(name: str) -> None:
    """Evaluated twice, with another batch, then trained: outputs, gradients, random streams."""
    ours, theirs, call, other = FAMILIES[name].make_twins()
    counting = Counting()
    compiled = stator.compile(theirs, backend=counting)
    for training, calls in ((False, [call, call, other]), (True, [call, other])):
        ours.train(training)
        theirs.train(training)
        for each in calls:
            assert_same(
                ours,
                compiled,
                partial(copy.copy, each),
                calls=1,
                tolerance=FAMILY,
                owners=(ours, theirs),
            )
    counting, plain = Counting(), FAMILIES[name].make_twins()[0]
    stator.compile(plain, backend=counting)(*call.args, **call.kwargs)
    other_plain = FAMILIES[name].make_twins()[0]  # some note in their first call what they warn of
    assert counting.count <= graphs_of_torch_compile(other_plain, *call.args, **call.kwargs)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LIBRARIES)
def test_library_gives_what_plain_python_gives_in_no_more_graphs(name: str) -> None:
    """Several batches evaluated, then trained: outputs, gradients, buffers, random streams."""
    torch.manual_seed(20)
    row = LIBRARIES[name]
    made = row.make()
    ours, theirs, others = (copy.deepcopy(made) for _ in range(3))
    calls = [
        (training, row.call(batch))
        for training, batch in ((False, 2), (False, 2), (False, 3), (True, 2))
    ]
    counting, expected = Counting(), Counting()
    compiled = stator.compile(theirs, backend=counting)
    for training, call in calls:
        for one in (ours, theirs):
            _set_training(one, training)
        owners = (ours, theirs) if isinstance(ours, torch.nn.Module) else None
        assert_same(ours, compiled, partial(copy.copy, call), calls=1, owners=owners)
    run: Any = torch.compile(others, backend=expected)
    for training, call in calls:
        _set_training(others, training)
        run(*copy.deepcopy(call.args))
    torch.compiler.reset()
    assert counting.count <= expected.count, compiled.report


def _set_training(made: Any, training: bool) -> None:
    if isinstance(made, torch.nn.Module):
        made.train(training)


def test_one_entry_serves_every_instance_of_a_module_class() -> None:
    counting = Counting()
    first, second, call, _ = ZOO["bert"].make_twins()
    run = stator.compile(lambda model, kwargs: model(**kwargs).last_hidden_state, backend=counting)
    run(first, call.kwargs)
    once = counting.count
    run(second, call.kwargs)
    assert counting.count == once


@pytest.mark.parametrize(("backend", "tolerance"), [("eager", EXACT), ("aot_eager", AOT)])
def test_training_loop_with_compiled_forward(backend: str, tolerance: Tolerance) -> None:
    def trained(*, plainly: bool) -> dict[str, Any]:
        model, optimizer = make_training()
        return train(model, optimizer, model if plainly else stator.compile(model, backend=backend))

    assert_same(
        lambda: trained(plainly=True),
        lambda: trained(plainly=False),
        tuple,
        calls=1,
        tolerance=tolerance,
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_training_loop(backend: str) -> None:
    """Forward, backward, clipping, optimiser and schedule are all inside; breaks are allowed,
    differences are not.

    Not bit by bit: torch's optimisers ask ``torch.compiler.is_compiling()`` and then compute in
    another order.
    """

    def trained(loop: Any) -> dict[str, Any]:
        model, optimizer = make_training()
        return loop(model, optimizer, model)  # type: ignore[no-any-return]

    compiled = stator.compile(train, backend=backend)
    assert_same(lambda: trained(train), lambda: trained(compiled), tuple, calls=1, tolerance=AOT)


def test_compiled_copy_is_a_model_of_its_own() -> None:
    model, _, call, _ = ZOO["distilbert"].make_twins()
    compiled = stator.compile(model, backend="eager")
    before = compiled(*call.args, **call.kwargs).last_hidden_state
    twin = copy.deepcopy(compiled)
    for parameter in twin.parameters():
        parameter.data.zero_()
    after = compiled(*call.args, **call.kwargs).last_hidden_state
    assert before.equal(after)


def test_every_break_that_remains_is_listed() -> None:
    """docs/reference/model-breaks.md says which models break, and all others are one graph."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "model-breaks.md").read_text()
    listed = {
        line.split()[1] for line in page.splitlines() if line.startswith("| ") and "[" in line
    }
    found = set()
    messages.warning_once.cache_clear()  # a warning that comes once breaks the first call only
    for name in ("gpt2", "bert", "encoder", "resnet", "recurrent"):
        _, model, call, _ = ZOO[name].make_twins()
        compiled: Any = stator.compile(model, backend="eager")
        for _ in range(2):
            compiled(*call.args, **call.kwargs)
        found |= {name} if compiled.report.breaks else set()
    assert found == listed
