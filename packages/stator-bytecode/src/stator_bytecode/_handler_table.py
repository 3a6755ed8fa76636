"""Handlers by key, registered once and read many times.

A table is a value: the module that makes it fills it with `handles`, everyone else reads it or
derives another from it. A key claimed twice, and an override of nothing, are errors that name the
handlers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import attrs

K = TypeVar("K", bound=Hashable)
H = TypeVar("H", bound=Callable[..., Any])
F = TypeVar("F", bound=Callable[..., Any])


class HandlerConflict(Exception):
    """Two handlers claim one key, or an override has nothing to override."""


@attrs.frozen(eq=False, repr=False)
class HandlerTable(Mapping[K, H], Generic[K, H]):
    """Handlers of one kind; `what` names it in error messages ("opcode")."""

    what: str
    _handlers: dict[K, H] = attrs.Factory(dict)

    def handles(self, *keys: K) -> Callable[[H], H]:
        def register(handler: H) -> H:
            self._add(dict.fromkeys(keys, handler))
            return handler

        return register

    def handles_each(self, family: Iterable[K] | Mapping[K, Any]) -> Callable[[F], F]:
        """One handler for a family of keys; `of` is the one that is meant: the key, or what a
        mapping has for that."""
        facts = family if isinstance(family, Mapping) else {key: key for key in family}

        def register(handler: F) -> F:
            for key, fact in facts.items():
                made: Any = functools.update_wrapper(functools.partial(handler, of=fact), handler)
                self._add({key: made})
            return handler

        return register

    def merged_with(self, *others: Mapping[K, H]) -> HandlerTable[K, H]:
        merged: HandlerTable[K, H] = HandlerTable(self.what, dict(self._handlers))
        for other in others:
            merged._add(other)
        return merged

    def overridden_by(self, other: Mapping[K, H]) -> HandlerTable[K, H]:
        if unknown := sorted(repr(key) for key in other if key not in self):
            raise HandlerConflict(f"no {self.what} to override: {', '.join(unknown)}")
        return HandlerTable(self.what, {**self._handlers, **other})

    def _add(self, new: Mapping[K, H]) -> None:
        # Checked before any is stored: a conflict leaves the table as it was.
        for key, handler in new.items():
            if key in self._handlers:
                raise HandlerConflict(
                    f"{self.what} {key!r}: both {_name(self[key])} and {_name(handler)}"
                )
        self._handlers.update(new)

    def __getitem__(self, key: K) -> H:
        return self._handlers[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)

    def __repr__(self) -> str:
        return f"HandlerTable({self.what!r}, {len(self)} handlers)"


def _name(handler: Callable[..., Any]) -> str:
    return f"{handler.__module__}.{handler.__qualname__}"
