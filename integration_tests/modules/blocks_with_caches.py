"""Programs of stacks of blocks that read and write an object which the program made, as a cache of
keys and values, for `test_equal_blocks_with_caches`."""

from collections.abc import Callable
from typing import Any

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
        self.filled: dict[int, Any] = {index: index % 2 for index in range(depth)}
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
        self.other = 3 if index == 2 else index
        self.inner = Inner(index)
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


def under_known_index(block: Any, keys: Tensor, cache: Any) -> Any:
    known = cache.filled.get(block.index)
    cache.filled[block.index] = keys
    return keys * 2.0 if cache.filled[block.index] is known else keys + 1.0


def under_two_indices(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.filled[block.index] = keys
    cache.filled[block.other] = keys * 2.0
    cache.layers[block.other] = keys * 3.0
    cache.layers[block.index] = block.other
    return keys if cache.filled[block.index] is keys else keys * 3.0


def put_and_counted(block: Any, keys: Tensor, cache: Any) -> Any:
    cache.filled[block.index] = None
    return keys * float(sum(value is None for value in cache.filled.values()))


def counted_and_put(block: Any, keys: Tensor, cache: Any) -> Any:
    found = keys * float(len([item for item in cache.layers if item is None]))
    cache.layers[block.index] = None
    return found + 1.0


def put_in_inner_call(block: Any, keys: Tensor, cache: Any) -> Any:
    return block.inner(keys, cache) + len(cache.filled)


def put_by_inner_call(block: Any, keys: Tensor, cache: Any) -> Any:
    return block.inner(keys, cache) * 2.0


class Inner(nn.Module):
    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index

    def forward(self, keys: Tensor, cache: Any) -> Tensor:
        cache.filled[self.index] = keys
        cache.layers[self.index].keys = keys * 2.0
        return keys + 1.0


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
    *(gives_what_it_wrote, through_argument, under_known_index, under_two_indices),
    *(put_and_counted, counted_and_put, put_in_inner_call, put_by_inner_call),
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


def other_entry_of_dict(model: Any, cache: Cache) -> None:
    cache.filled[3] = torch.ones(1, SIZE)


def other_keys(model: Any, cache: Cache) -> None:
    cache.filled = {float(key): value for key, value in cache.filled.items()}  # type: ignore[misc]


def no_entry_of_dict(model: Any, cache: Cache) -> None:
    del cache.filled[2]


PREPARED = [
    *(window_among_others, shared_entry, shared_log, filled_entry, all_filled, alias_of_two),
    *(other_class, without_entry, other_entry_of_dict, other_keys, no_entry_of_dict),
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
