"""The record of a trace about equal calls of modules, for the report: which were recorded again,
and why others were interpreted.

    calls of Block that were recorded like an earlier one: 46
    layers.7 was not: dropout.training is another one, True, elsewhere the object False
    calls of Cached that were interpreted each, as the argument cache may be changed: 12
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from attrs import Factory, define, frozen
from stator_guards import Source

FEWEST = 2
"""The number of repeated calls, of one class in one container, from which on the report has a line
about them, and about those that differ."""


@frozen
class Difference:
    """The reason for which a call is not recorded like an earlier one."""

    text: str
    of_new_object: bool = False
    """New objects among the arguments hold something else: so they do in most calls of a stack."""


@define(eq=False)
class EqualCallRecord:
    """See the module."""

    repeated: Counter[tuple[type, Source | None]] = Factory(Counter)
    """The number of calls that were recorded again, by classes and what the modules are in."""
    different: dict[Source, tuple[type, str]] = Factory(dict)
    """The differences of calls that were interpreted, by the sources of their modules."""
    alone: dict[Source, tuple[type, str]] = Factory(dict)
    """The reasons for which calls are compared with no other one, by the sources of their
    modules."""
    left: Counter[type] = Factory(Counter)
    """The number of calls that were not compared with others, after several differences."""

    def add_repeated(self, cls: type, module: Source) -> None:
        self.repeated[cls, module.base] += 1

    def add_different(self, cls: type, module: Source, text: str) -> None:
        """Record a difference, unless the module is a part of one that differs."""
        if self.different.keys().isdisjoint(module.steps()):
            self.different[module] = cls, text

    def add_alone(self, cls: type, module: Source, text: str) -> None:
        """Record the reason for which no other call is compared with this one."""
        self.alone.setdefault(module, (cls, text))

    def _lines_of_alone(self) -> Iterator[str]:
        """Yield a line for the stacks of modules whose calls are compared with none; parts of such
        modules are left out."""
        stacks: dict[tuple[type, str, Source | None], list[Source]] = {}
        for module, (cls, text) in self.alone.items():
            stacks.setdefault((cls, text, module.base), []).append(module)
        large = {key: modules for key, modules in stacks.items() if len(modules) > FEWEST}
        told = {module for modules in large.values() for module in modules}

        counts: Counter[tuple[str, str]] = Counter()
        for (cls, text, _), modules in large.items():
            outermost = [each for each in modules if told.isdisjoint([*each.steps()][1:])]
            counts[cls.__qualname__, text] += len(outermost)
        for (name, text), count in counts.items():
            if count:
                yield f"calls of {name} that were interpreted each, as {text}: {count}"

    def lines(self) -> Iterator[str]:
        """Yield a line for each class, and one for each module that differs from its
        neighbours."""
        counts: Counter[type] = Counter()
        for (cls, _), count in self.repeated.items():
            counts[cls] += count if count >= FEWEST else 0
        for cls, count in counts.items():
            if count:
                name = cls.__qualname__
                yield f"calls of {name} that were recorded like an earlier one: {count}"

        for module, (cls, text) in self.different.items():
            if self.repeated[cls, module.base] >= FEWEST:
                path = short_path(module)
                yield f"{path} was not: {text.replace(f'{path}.', '')}"
        for cls, count in self.left.items():
            if counts[cls]:
                yield f"calls of {cls.__qualname__} that were not compared any more: {count}"
        yield from self._lines_of_alone()


def effect_of(module: Source, changed: list[Source]) -> str:
    """Describe why a call that changed these objects is not repeated."""
    if not changed:
        return "they do more than compute"
    names = (re.sub(r"\.__dict__$", "", short_path(source)) for source in changed)
    own = short_path(module)
    name = next(names)
    return f"they change {name.removeprefix(f'{own}.') if name != own else 'themselves'}"


def short_path(source: Source) -> str:
    """Return the path of a module, or of something in it, as the program has it: `layers.7`."""
    text = re.sub(r"\._(?:modules|parameters|buffers)\['([^']+)'\]", r".\1", source.description)
    return text.removeprefix("self.")
