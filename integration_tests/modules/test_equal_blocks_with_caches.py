"""Stacks of equal blocks that read and write an object which the program made, as a cache of keys
and values: what each block does with it is as in plain Python, in the first, a middle and the last
block, and blocks that do the same with their own part of it are interpreted once."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor, nn

SIZE, DEPTH = 4, 5


class Entry:
    """The part of a block; filled when it is first used."""

    kind = "full"

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.is_filled = False
        self.log: list[Any] = []

    def update(self, keys: Tensor) -> Tensor:
        if not self.is_filled:
            self.keys = torch.zeros(1, SIZE)
            self.dtype = keys.dtype
            self.is_filled = True
        assert self.keys is not None
        self.keys = torch.cat([self.keys, keys])
        return self.keys


class Window(Entry):
    kind = "window"

    def update(self, keys: Tensor) -> Tensor:
        return super().update(keys)[-2:]


class Slotted:
    __slots__ = ("keys",)

    def __init__(self) -> None:
        self.keys: Tensor | None = None


class Cache:
    def __init__(self, depth: int = DEPTH) -> None:
        self.layers: list[Any] = [Entry() for _ in range(depth)]
        self.named: dict[Any, Any] = {}
        self.grown: list[Any] = []
        self.count = 0
        self.latest: Any = None

    def update(self, keys: Tensor, index: int) -> Tensor:
        found: Tensor = self.layers[index].update(keys)
        return found


class Block(nn.Module):
    def __init__(self, index: int, use: Callable[..., Any]) -> None:
        super().__init__()
        self.index = index
        self.part = nn.Linear(SIZE, SIZE)
        self.use = use

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        keys = self.part(x).tanh()
        found: Tensor = keys if cache is None else self.use(self, keys, cache)
        return found


class Stack(nn.Module):
    def __init__(self, use: Callable[..., Any], depth: int = DEPTH) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(index, use) for index in range(depth))

    def prepare(self, cache: Cache) -> None:
        pass

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Any]:
        if cache is None:
            cache = Cache()
        for layer in self.layers:
            x = layer(x, cache=cache)
        return x, cache


# -- what blocks do with it ------------------------------------------------------------------------
def update(block: Any, keys: Tensor, cache: Any) -> Any:
    return keys + cache.update(keys, block.index).sum(0, True)


def index_matters(block: Any, keys: Tensor, cache: Any) -> Any:
    found = cache.update(keys, block.index).sum(0, True)
    return keys * 2.0 if block.index % 2 else keys + found


def index_is_computed_with(block: Any, keys: Tensor, cache: Any) -> Any:
    return cache.update(keys, block.index).sum(0, True) * block.index + keys


def first_entry_as_well(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.update(keys, block.index)
    return keys + cache.layers[0].keys.sum(0, True)


def first_entry_before(block: Any, keys: Tensor, cache: Any) -> Any:
    start = cache.layers[0].update(keys).sum(0, True)
    return start + cache.update(keys, block.index).sum(0, True)


def compared_with_first(block: Any, keys: Tensor, cache: Any) -> Any:
    entry = cache.layers[block.index]
    return entry.update(keys).sum(0, True) * (3.0 if entry is cache.layers[0] else 2.0)


def searched(block: Any, keys: Tensor, cache: Any) -> Any:
    entry = cache.layers[block.index]
    return entry.update(keys).sum(0, True) * (cache.layers.index(entry) + 1.0)


def entry_before(block: Any, keys: Tensor, cache: Any) -> Any:
    found = cache.update(keys, block.index)
    before = cache.layers[block.index - 1].keys
    return found.sum(0, True) if before is None else found.sum(0, True) + before.sum(0, True)


def same_entry(block: Any, keys: Tensor, cache: Any) -> Any:
    return keys + cache.update(keys, block.index // 2).sum(0, True)


def counted(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.count += 1
    return cache.update(keys, block.index).sum(0, True) * cache.count


def counted_unread(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.layers[block.index].count = block.index
    return keys + cache.update(keys, block.index).sum(0, True)


def latest(block: Any, keys: Tensor, cache: Any) -> Any:
    before, cache.latest = cache.latest, keys
    return keys if before is None else keys + before


def grown(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.grown.append(keys)
    return keys + len(cache.grown)


def grown_with_last(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.grown.append(keys * 2.0)
    return keys + cache.grown[-1]


def filled_up(block: Any, keys: Tensor, cache: Any) -> Any:
    while len(cache.grown) <= block.index:
        cache.grown.append(Entry())
    return keys + cache.grown[block.index].update(keys).sum(0, True)


def under_index(block: Any, keys: Tensor, cache: Any) -> Any:
    known = cache.named.get(block.index)
    cache.named[block.index] = keys
    return keys * 2.0 if known is None else keys + known


def under_name(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.named[f"layer {block.index}"] = keys
    return keys * 2.0


def under_one_name(block: Any, keys: Tensor, cache: Any) -> Any:
    before = cache.named.pop("last", None)
    cache.named["last"] = keys
    return keys if before is None else before + keys


def replaced_entry(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.layers[block.index] = keys
    return keys * 2.0


def new_parts(block: Any, keys: Tensor, cache: Any) -> Any:
    entry = cache.layers[block.index]
    entry.parts = {"pair": (keys, keys * 2.0), "list": [keys], "entry": Entry(), "own": entry}
    entry.parts["again"] = entry.parts["list"]
    entry.parts["entry"].update(keys)
    entry.log = [entry.parts]
    return keys + 1.0


def own_parts(block: Any, keys: Tensor, cache: Any) -> Any:
    entry = cache.layers[block.index]
    entry.weight, entry.block, entry.index = block.part.weight, block, block.index
    entry.shared = cache
    return keys + 1.0


def appended_to_entry(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.layers[block.index].log.append(keys)
    cache.layers[block.index].log.append("more")
    return keys * float(len(cache.layers[block.index].log))


def deleted(block: Any, keys: Tensor, cache: Any) -> Any:
    entry = cache.layers[block.index]
    del entry.is_filled
    entry.__dict__["keys"] = keys
    return keys if hasattr(entry, "is_filled") else keys * 2.0


def break_inside(block: Any, keys: Tensor, cache: Any) -> Any:
    found = cache.update(keys, block.index)
    print(end="")
    return found.sum(0, True) + keys


def break_in_one(block: Any, keys: Tensor, cache: Any) -> Any:
    found = cache.update(keys, block.index)
    if block.index == 3:
        print(end="")
    return found.sum(0, True) + keys


def caught(block: Any, keys: Tensor, cache: Any) -> Any:
    try:
        cache.layers[block.index].update(keys)
        return keys + cache.layers[block.index + DEPTH - 2].kind.count("l")
    except IndexError:
        return keys * 3.0


def negative(block: Any, keys: Tensor, cache: Any) -> Any:
    return keys + cache.layers[-1 - block.index].update(keys).sum(0, True)


def kept_by_block(block: Any, keys: Tensor, cache: Any) -> Any:
    block.kept = cache.layers[block.index]
    return keys + cache.update(keys, block.index).sum(0, True)


def written_in_place(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.update(keys, block.index).add_(1.0)
    return keys + 1.0


def reads_what_it_wrote(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.update(keys, block.index)
    found = cache.layers[block.index].keys
    assert found is cache.layers[block.index].keys
    return keys + found.sum(0, True)


def gives_what_it_wrote(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.layers[block.index].keys = keys
    cache.layers[block.index].again = keys
    return keys


def through_argument(block: Any, keys: Tensor, cache: Any) -> Any:
    entries = cache.layers
    return (
        keys
        + sum(entry.keys.sum() for entry in entries if entry.is_filled)
        + (entries[block.index].update(keys).sum(0, True))
    )


USES = [
    *(update, index_matters, index_is_computed_with, first_entry_as_well, first_entry_before),
    *(compared_with_first, searched, entry_before, same_entry, counted, counted_unread, latest),
    *(grown, grown_with_last, filled_up, under_index, under_name, under_one_name),
    *(replaced_entry, new_parts, own_parts, appended_to_entry, deleted, break_inside),
    *(break_in_one, caught, negative, kept_by_block, written_in_place, reads_what_it_wrote),
    *(gives_what_it_wrote, through_argument),
]


# -- how the stack is made, and what is done with the cache ----------------------------------------
def window_among_others(model: Any, cache: Cache) -> None:
    cache.layers[2] = Window()


def shared_entry(model: Any, cache: Cache) -> None:
    cache.layers[3] = cache.layers[1]


def shared_log(model: Any, cache: Cache) -> None:
    cache.layers[3].log = cache.layers[2].log


def filled_entry(model: Any, cache: Cache) -> None:
    cache.layers[4].update(torch.ones(1, SIZE))


def all_filled(model: Any, cache: Cache) -> None:
    for index, entry in enumerate(cache.layers):
        entry.update(torch.full((1, SIZE), float(index)))


def alias_of_two(model: Any, cache: Cache) -> None:
    all_filled(model, cache)
    cache.layers[2].keys = cache.layers[1].keys


def other_class(model: Any, cache: Cache) -> None:
    cache.layers[0].__class__ = Window


def without_entry(model: Any, cache: Cache) -> None:
    cache.layers.pop()
    cache.layers.append(Entry())


PREPARED = [
    *(window_among_others, shared_entry, shared_log, filled_entry, all_filled, alias_of_two),
    *(other_class, without_entry),
]


def same_index(model: Any) -> None:
    model.layers[2].index = 1


def last_index(model: Any) -> None:
    model.layers[1].index = DEPTH - 1


def index_of_other_class(model: Any) -> None:
    model.layers[1].index = True


def index_from_the_end(model: Any) -> None:
    model.layers[0].index = -1


def index_out_of_range(model: Any) -> None:
    model.layers[4].index = DEPTH


def same_block(model: Any) -> None:
    model.layers[3] = model.layers[2]


CHANGES = [same_index, last_index, index_of_other_class, index_from_the_end]
CHANGES += [index_out_of_range, same_block]


class Prepared(Stack):
    """Makes the cache, and does something with it first."""

    prepared: Any = None

    def forward(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Any]:
        cache = Cache()
        if self.prepared is not None:
            self.prepared(self, cache)
        return super().forward(x, cache)


def shape_of(value: Any, known: dict[int, int]) -> Any:
    """Describe a value with all that it leads to, identities included."""
    if isinstance(value, str | int | float | None | torch.dtype):
        return value
    if id(value) in known:
        return "known", known[id(value)]
    known[id(value)] = len(known)
    if isinstance(value, Tensor):
        return "tensor", value.tolist(), value.requires_grad, value._is_view()
    if isinstance(value, list | tuple):
        return type(value).__name__, [shape_of(item, known) for item in value]
    if isinstance(value, dict):
        return [(key, shape_of(item, known)) for key, item in value.items()]
    if isinstance(value, nn.Module):
        return type(value).__name__
    return type(value).__name__, shape_of(vars(value), known)


def outcome(call: Any, *args: Any) -> Any:
    try:
        out, cache = call(*args)
    except (IndexError, AttributeError) as error:
        return type(error), str(error)
    if out.requires_grad:
        out.sum().backward()
    return shape_of((out, cache), {})


def outcomes(model: nn.Module, call: Any, change: Any = None) -> Iterator[list[Any]]:
    """Yield the effects of calls, with and without gradients; the model is changed after the first
    two."""
    for step in range(6):
        if step == 2 and change is not None:
            change(model)
        torch.manual_seed(step // 2)
        x = torch.randn(1, SIZE)
        model.zero_grad()
        with torch.set_grad_enabled(step % 2 == 0):
            found = [outcome(call, x)]
        found += [shape_of(p.grad, {}) for p in model.parameters()]
        found += [shape_of(vars(getattr(each, "kept", Entry())), {}) for each in model.modules()]
        yield found


def assert_as_plain(model: nn.Module, change: Any = None) -> None:
    plain = copy.deepcopy(model)
    compiled = stator.compile(model, backend="eager", options={"recompile_limit": 64})
    pairs = zip(outcomes(model, compiled, change), outcomes(plain, plain, change), strict=True)
    for found, expected in pairs:
        assert found == expected


SAMPLE = {index_matters, compared_with_first, new_parts, same_index, shared_entry, filled_entry}


def cases(*groups: list[Any]) -> list[Any]:
    """Return the cases; all but a sample are slow."""
    every = [each for group in groups for each in group]
    return [
        each if each in SAMPLE else pytest.param(each, marks=pytest.mark.slow) for each in every
    ]


@pytest.mark.parametrize("use", cases(USES))
def test_blocks_that_use_a_new_cache_are_as_in_python(use: Any) -> None:
    assert_as_plain(Prepared(use))


@pytest.mark.parametrize("prepared", cases(PREPARED))
def test_one_part_of_a_new_cache_differs(prepared: Any) -> None:
    for use in (update, same_entry):
        model = Prepared(use)
        model.prepared = prepared
        assert_as_plain(model)


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("prepared", PREPARED)
def test_one_part_differs_for_every_use(use: Any, prepared: Any) -> None:
    model = Prepared(use)
    model.prepared = prepared
    assert_as_plain(model)


@pytest.mark.parametrize("change", cases(CHANGES))
def test_the_index_of_one_block_is_another_one(change: Any) -> None:
    model = Prepared(update)
    change(model)
    assert_as_plain(model)


@pytest.mark.parametrize("change", cases(CHANGES))
def test_the_index_of_one_block_changes_between_calls(change: Any) -> None:
    assert_as_plain(Prepared(update), change)
