"""Functions of operator and functools that are defined in C, as plain Python."""

from __future__ import annotations

from typing import Any

import torch

__app_level__ = True


def get_items(items: Any, obj: Any) -> object:
    """`operator.itemgetter(*items)(obj)`."""
    if len(items) == 1:
        return obj[items[0]]
    return tuple([obj[item] for item in items])


def get_attributes(names: Any, obj: object) -> object:
    """`operator.attrgetter(*names)(obj)`."""
    if len(names) == 1:
        return _dotted(obj, names[0])
    return tuple([_dotted(obj, name) for name in names])


def _dotted(obj: object, name: str) -> object:
    for part in name.split("."):
        obj = getattr(obj, part)
    return obj


def call_method(name: str, args: Any, kwargs: Any, obj: Any) -> Any:
    """`operator.methodcaller(name, *args, **kwargs)(obj)`."""
    return getattr(obj, name)(*args, **kwargs)


def concat(a: Any, b: Any) -> object:
    if not hasattr(type(a), "__getitem__") or isinstance(a, dict | torch.Tensor):  # mappings to C
        raise TypeError(f"'{type(a).__name__}' object can't be concatenated")
    return a + b


_ABSENT: object = object()


def count_of(it: Any, b: object) -> int:
    """Count the items equal to `b`. `it` is an iterator, of which `for` would take an iterator once
    more."""
    count = 0
    while (item := next(it, _ABSENT)) is not _ABSENT:
        if item is b or item == b:
            count += 1
    return count


def index_of(it: Any, b: object) -> int:
    at = 0
    while (item := next(it, _ABSENT)) is not _ABSENT:
        if item is b or item == b:
            return at
        at += 1
    raise ValueError("sequence.index(x): x not in sequence")


def compare_keys(test: Any, compare: Any, x: object, y: object) -> object:
    """A comparison of `functools.cmp_to_key(compare)(x)`; `test` is a function of operator."""
    return test(compare(x, y), 0)


def cached_property_get(self: Any, instance: object, owner: object = None) -> object:
    """`functools.cached_property.__get__` as it is since 3.12, without a lock."""
    if instance is None:
        return self
    if self.attrname is None:
        raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
    kind, name = type(instance).__name__, self.attrname
    try:
        cache = instance.__dict__
    except AttributeError:
        raise TypeError(
            f"No '__dict__' attribute on {kind!r} instance to cache {name!r} property."
        ) from None

    value = cache.get(name, _ABSENT)
    if value is _ABSENT:
        value = self.func(instance)
        try:
            cache[name] = value
        except TypeError:
            what = f"The '__dict__' attribute on {kind!r} instance does not support item assignment"
            raise TypeError(f"{what} for caching {name!r} property.") from None
    return value


def prod(iterable: Any, start: object) -> object:
    """`math.prod`."""
    for item in iterable:
        start = start * item
    return start
