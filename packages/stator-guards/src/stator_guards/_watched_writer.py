"""Writes the predicate of a plan: compare each group's words, take pinned values from its binding, test the rest."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from stator_guards._kind import Guard
from stator_guards._plan import Group, Plan
from stator_guards._source import Source, parents_first
from stator_guards._watch import Watching
from stator_guards._writer import Names, Writer, uses

CHEAP = 20
"""Guards up to this rank that need no group are tested before any words are read."""


class WatchedWriter(Writer):
    """A writer that knows pinned sources: they are exported by the binding of their group."""

    def __init__(self, names: Names, count: Counter[Source], plan: Plan, watching: Watching, renew: str) -> None:
        super().__init__(names, count)
        self._watches = {watch.group: watch for watch in watching.watches}
        self._group_of = plan.group_of
        self._renew = renew
        self._opened: dict[Group, tuple[str, int]] = {}
        """The name of the binding, and the line that takes values out of it."""

    def _reads(self, source: Source) -> tuple[Source, ...]:
        return super()._reads(source) if self._pinned_in(source) is None else ()

    def _bind(self, source: Source) -> None:
        self._export(source)
        super()._bind(source)

    def _export(self, source: Source) -> None:
        """Take a pinned source from its binding instead of reading it."""
        if source in self._bound or (group := self._pinned_in(source)) is None:
            return
        self.open(group)
        if source not in self._bound:  # the tests that open a group may have taken it
            self._bound[source] = self._names.fresh(source.label)
            self._watches[group].exports.append(source)

    def arguments(self, sources: Sequence[Source]) -> str:
        return ", ".join(self._run(group, tuple(run)) for group, run in groupby(sources, self._pinned_in))

    def _run(self, group: Group | None, run: tuple[Source, ...]) -> str:
        if group is None or len(run) < 3:
            return super().arguments(run)
        self.open(group)
        batches = self._watches[group].batches
        batches.append(run)
        return f"*{self._opened[group][0]}.batches[{len(batches) - 1}]"

    def _pinned_in(self, source: Source) -> Group | None:
        group = self._group_of.get(source)
        return None if group is None or source is group.root else group

    def open(self, group: Group) -> None:
        """Compare the words of a group, once."""
        if group in self._opened:
            return
        watch = self._watches[group]
        key = "0" if group.root is None else f"{self.capture(id, 'id')}({self.value(group.root)})"
        label = "captured" if group.root is None else group.root.label
        bound = self._names.fresh(f"watched_{label}")
        self._opened[group] = (bound, len(self.lines) + 2)
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
        for source in group.inline:
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
        return any(self._pinned_in(source) is not None for source in parents_first(guard.sources))

    def _fill_exports(self) -> None:
        for group, (bound, line) in self._opened.items():
            if exports := self._watches[group].exports:
                self.lines[line] = f"{', '.join(self._bound[source] for source in exports)}, = {bound}.values"
        self.lines = [line for line in self.lines if line]


def write_watched(plan: Plan, watching: Watching, names: Names, parameters: Sequence[str]) -> list[str]:
    """The lines of the watched predicate."""
    renew = f"{names.capture(watching.renew, 'walk_and_renew')}({', '.join(parameters)})"
    writer = WatchedWriter(names, uses(plan.residual), plan, watching, renew)
    writer.write_plan(plan)
    return writer.lines
