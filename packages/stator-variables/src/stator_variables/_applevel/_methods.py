"""Methods, as plain Python: reading an attribute of a class that defines `__getattr__`, and some of
torch."""

from __future__ import annotations

from typing import Any

__app_level__ = True


def read(first: Any, then: Any, name: str) -> object:
    """`first` is its `__getattribute__`, `then` its `__getattr__`, bound: nothing is handled while
    that one runs."""
    try:
        return first(name)
    except AttributeError:
        pass
    return then(name)


# Operations of a dict on a key.


def hashed(key: object) -> int:
    return hash(key)


def equal(key: object, other: object) -> bool:
    return True if key == other else False  # noqa: SIM210 - `bool` may be another name here


# What `dictview_richcompare` and `dictviews_isdisjoint` do: the pairs of one are looked for in the
# other, unhashed.


def compared(view: Any, other: Any, symbol: str) -> bool:
    ours, theirs = len(view), len(other)
    if symbol in ("==", "!="):
        return (ours == theirs and _all_in(view, other)) is (symbol == "==")
    if symbol in ("<", "<="):
        return (ours < theirs or (ours == theirs and symbol == "<=")) and _all_in(view, other)
    return (ours > theirs or (ours == theirs and symbol == ">=")) and _all_in(other, view)


def _all_in(items: Any, container: Any) -> bool:
    for item in items:
        if item not in container:
            return False
    return True


def is_disjoint(view: Any, other: Any, has_length: bool) -> bool:
    if view is other:
        return len(view) == 0
    if has_length and len(other) > len(view):
        view, other = other, view
    for item in other:
        if item in view:
            return False
    return True


def common(view: Any, other: Any) -> object:
    """`_PyDictView_Intersect`."""
    found = set()
    for item in other:
        if item in view:
            found.add(item)
    return found


def differing(left: Any, others: Any) -> object:
    """`dictitems_xor`; `left` is a copy of the dict."""
    found = set()
    for pair in others:
        if pair in left.items():
            del left[pair[0]]
        else:
            found.add(pair)
    found.update(left.items())
    return found


# A profiler range, without the annotations for TorchScript that torch writes into its `__init__`.


def initialise_range(self: Any, name: str, args: str | None = None) -> None:
    """`torch.profiler.record_function.__init__`."""
    self.name = name
    self.args = args
    self.run_callbacks_on_exit = True
    self.record = None
    self._cupti_monitor_external_id = None


# Tensor methods that are made of others, as plain Python.


def tolist(tensor: Any) -> object:
    if tensor.dim() == 0:
        return tensor.item()
    return [tolist(row) for row in tensor.unbind(0)]


def translated(text: str, table: Any) -> str:
    """`str.translate` (`_PyUnicode_TranslateCharmap`)."""
    parts = []

    for character in text:
        try:
            found = table[ord(character)]
        except LookupError:
            found = character
        if found is None:
            continue

        if isinstance(found, int):
            if not 0 <= found < 0x110000:
                raise ValueError("character mapping must be in range(0x110000)")
            found = chr(found)
        elif not isinstance(found, str):
            raise TypeError("character mapping must return integer, None or str")
        parts.append(found)

    return "".join(parts)


# Fields of arrays, of numbers that may be symbolic.


def product(size: Any, itemsize: int) -> Any:
    """`ndarray.nbytes`."""
    return size * itemsize


def products(steps: Any, itemsizes: Any) -> tuple[Any, ...]:
    """`ndarray.strides`."""
    return tuple([step * size for step, size in zip(steps, itemsizes, strict=True)])
