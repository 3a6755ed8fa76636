"""Writes the predicate of a plan: compare the words of each group, take pinned values from its
binding, test others."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby

from stator_guards._guard import Guard
from stator_guards._plan import Group, Plan
from stator_guards._source import Source, parents_first
from stator_guards._walk import tuple_text
from stator_guards._watch import Watching
from stator_guards._writer import Names, Writer, uses

CHEAP = 28
"""Guards up to this rank that need no group are tested before any words are read."""


class WatchedWriter(Writer):
    """A writer that reads pinned sources from the binding of their group."""

    def __init__(
        self, names: Names, count: Counter[Source], plan: Plan, watching: Watching
    ) -> None:
        super().__init__(names, count)
        self._watches = watching.watches
        self._group_of = plan.group_of
        self._state = tuple_text(watching.walk.parameters)
        self._opened: dict[Group, str] = {}
        """The names of bindings."""
        self._takes: list[tuple[Group, int, str]] = []
        """The lines that take values out of bindings, with their indentation, filled in at the
        end."""

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
        return ", ".join(
            self._run(group, tuple(run)) for group, run in groupby(sources, self._pinned_in)
        )

    def _run(self, group: Group | None, run: tuple[Source, ...]) -> str:
        if group is None or len(run) < 3:
            return super().arguments(run)
        self.open(group)
        batches = self._watches[group].batches
        batches.append(run)
        return f"*{self._opened[group]}.batches[{len(batches) - 1}]"

    def kept(self, fn: Callable[..., object], sources: Sequence[Source]) -> list[str]:
        """One part for each group, which its binding keeps."""
        groups: dict[Group | None, list[Source]] = {}
        for source in sources:
            groups.setdefault(self._pinned_in(source), []).append(source)

        found = super().kept(fn, groups.pop(None, []))
        for group, members in groups.items():
            if group is not None:
                self.open(group)
                kept = self._watches[group].kept
                kept.append((fn, tuple(members)))
                found.append(f"{self._opened[group]}.kept[{len(kept) - 1}]")
        return found

    def proven(self, sources: Sequence[Source], kind: type) -> list[Source]:
        covered = {
            guard.source
            for group in self._watches
            for guard in group.covered
            if type(guard.kind) is kind
        }
        return [
            source
            for source in sources
            if source in covered and self._pinned_in(source) is not None
        ]

    def _pinned_in(self, source: Source) -> Group | None:
        group = self._group_of.get(source)
        return None if group is None or source is group.root else group

    def open(self, group: Group) -> None:
        """Compare the words of a group, once."""
        if group in self._opened:
            return
        watch = self._watches[group]
        root = "None" if group.root is None else self.value(group.root)
        label = "captured" if group.root is None else group.root.label
        key = "0" if group.root is None else f"{self.capture(id, 'id')}({root})"
        bound = self._opened[group] = self._names.fresh(f"watched_{label}")
        bindings = self.capture(watch.bindings, f"bindings_{label}")
        read = watch.reader.text.format(places=f"{bound}.places")
        for name, obj in watch.reader.objects.items():
            read = read.replace(name, self.capture(obj, name), 1)
        # captured under a name of its own: a bound method is made anew for every reader
        renew = f"{bound} = {self.capture(watch, f'watch_{label}')}.renew({root}, {self._state})"
        count = f"{group.count} guards stand on {group.words} words"
        self.lines += [
            f"{bound} = {bindings}.get({key})  # {count}",
            f"if {bound} is None or {read} != {bound}.expected:",
            f"    {renew}",
            f"    if {bound} is None: return False",
        ]
        self._take(group, "")
        if group.inline:
            self._compare_inline(group, renew)

    def _take(self, group: Group, indentation: str) -> None:
        self._takes.append((group, len(self.lines), indentation))
        self.lines.append("")

    def _compare_inline(self, group: Group, renew: str) -> None:
        """Compare what one step out of a changing container gives with the value in the binding."""
        tests = []
        for source in group.inline:
            fresh = source.write(self.value(source.whole), self)
            tests.append(f"{fresh} is not {self.value(source)}")
        self.lines += [
            f"if {' or '.join(tests)}:",
            f"    {renew}",
            f"    if {self._opened[group]} is None: return False",
        ]
        self._take(group, "    ")

    def write_plan(self, plan: Plan) -> None:
        early = [
            guard
            for guard in plan.residual
            if guard.kind.rank <= CHEAP and not self._needs_group(guard)
        ]
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
        near = any(self._pinned_in(source) is not None for source in guard.sources)
        return near or any(
            self._pinned_in(source) is not None for source in parents_first(guard.sources)
        )

    def _fill_exports(self) -> None:
        for group, line, indentation in self._takes:
            if exports := self._watches[group].exports:
                names = ", ".join(self._bound[source] for source in exports)
                self.lines[line] = f"{indentation}{names}, = {self._opened[group]}.values"
        self.lines = [line for line in self.lines if line]


def write_watched(plan: Plan, watching: Watching, names: Names) -> list[str]:
    """The lines of the watched predicate."""
    count = uses(plan.residual, lambda source: source in plan.group_of)
    writer = WatchedWriter(names, count, plan, watching)
    writer.write_plan(plan)
    return writer.lines
