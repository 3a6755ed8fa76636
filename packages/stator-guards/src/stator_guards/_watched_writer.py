"""Writes the predicate of a plan: compare each group's words, take pinned values from its binding, test the rest."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from stator_guards._kind import Guard
from stator_guards._part import PartSource
from stator_guards._plan import Group, Plan
from stator_guards._source import Source
from stator_guards._watch import Watching
from stator_guards._writer import Names, Writer, uses

CHEAP = 20
"""Guards up to this rank that need no group are tested before any words are read."""


class WatchedWriter(Writer):
    """A writer that knows pinned sources: they are exported by the binding of their group."""

    def __init__(self, names: Names, count: Counter[Source], plan: Plan, watching: Watching, renew: str) -> None:
        super().__init__(names, count)
        self._watches = {id(watch.group): watch for watch in watching.watches}
        self._group_of = plan.group_of
        self._renew = renew
        self._opened: dict[int, tuple[str, int]] = {}
        self._exports: dict[int, list[str]] = {}

    def value(self, source: Source) -> str:
        self._export(source)
        return super().value(source)

    def _reads(self, source: Source) -> tuple[Source, ...]:
        return () if self._is_pinned(source) else super()._reads(source)

    def _bind(self, source: Source) -> None:
        self._export(source)
        super()._bind(source)

    def _export(self, source: Source) -> None:
        """Take a pinned source from its binding instead of reading it."""
        if source in self._bound or not self._is_pinned(source):
            return
        group = self._group_of[source]
        self.open(group)
        if source in self._bound:  # the tests that open a group took it already
            return
        name = self._bound[source] = self._names.fresh(source.label)
        self._watches[id(group)].exports.append(source)
        self._exports[id(group)].append(name)

    def arguments(self, sources: Sequence[Source]) -> str:
        runs = groupby(sources, lambda source: id(self._group_of.get(source)) if self._is_pinned(source) else 0)
        return ", ".join(self._run(key, tuple(run)) for key, run in runs)

    def _run(self, key: int, run: tuple[Source, ...]) -> str:
        if not key or len(run) < 3:
            return super().arguments(run)
        watch = self._watches[key]
        self.open(watch.group)
        watch.batches.append(run)
        return f"*{self._opened[key][0]}.batches[{len(watch.batches) - 1}]"

    def _is_pinned(self, source: Source) -> bool:
        group = self._group_of.get(source)
        return group is not None and source is not group.root

    def open(self, group: Group) -> None:
        """Compare the words of a group, once."""
        if id(group) in self._opened:
            return
        watch = self._watches[id(group)]
        key = "0" if group.root is None else f"{self.capture(id, 'id')}({super().value(group.root)})"
        label = "captured" if group.root is None else group.root.label
        bound = self._names.fresh(f"watched_{label}")
        self._opened[id(group)] = (bound, len(self.lines) + 2)
        self._exports[id(group)] = []
        bindings = self.capture(watch.bindings, f"bindings_{label}")
        read = watch.reader.text.format(places=f"{bound}.places")
        for name, obj in watch.reader.objects.items():
            read = read.replace(name, self.capture(obj, name), 1)
        count = len(group.cells.origins)
        self.lines += [
            f"{bound} = {bindings}.get({key})  # {len(group.covered)} guards stand on {count} words",
            f"if {bound} is None or {read} != {bound}.expected: return {self._renew}",
            "",
        ]
        for source in group.pinned:
            if source in group.inline:
                self._test_inline(source)

    def _test_inline(self, source: Source) -> None:
        if isinstance(source, PartSource):
            fresh = source.write(self.value(source.whole), self)
            self.lines.append(f"if {fresh} is not {self.value(source)}: return {self._renew}  # {source.name}")

    def write_plan(self, plan: Plan) -> None:
        early = [guard for guard in plan.residual if guard.kind.rank <= CHEAP and not self._needs_group(guard)]
        self.write(early)
        for group in plan.groups:
            if group.root is None or not group.root.children:
                self.open(group)
        chosen = set(early)
        self.write([guard for guard in plan.residual if guard not in chosen])
        for group in plan.groups:
            self.open(group)
        self._fill_exports()

    def _needs_group(self, guard: Guard) -> bool:
        pending = list(guard.sources)
        while pending:
            source = pending.pop()
            if self._is_pinned(source):
                return True
            pending += source.children
        return False

    def _fill_exports(self) -> None:
        for key, (bound, line) in self._opened.items():
            if names := self._exports[key]:
                self.lines[line] = f"{', '.join(names)}, = {bound}.values"
        self.lines = [line for line in self.lines if line]


def write_watched(plan: Plan, watching: Watching, names: Names, parameters: Sequence[str]) -> list[str]:
    """The lines of the watched predicate."""
    renew = f"{names.capture(watching.renew, 'walk_and_renew')}({', '.join(parameters)})"
    writer = WatchedWriter(names, uses(plan.residual), plan, watching, renew)
    writer.write_plan(plan)
    return writer.lines
