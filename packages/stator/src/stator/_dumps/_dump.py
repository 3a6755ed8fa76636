"""`dump`: everything generated, as files that run.

    folder/run.py          the compiled function again: `from run import compiled`
    folder/report.txt      the text of `compiled.report`, with all guards
    folder/guards_0.py     the predicate of entry 0, to read
    folder/entry_0.py      the source of entry 0, run as it stands in the file
    folder/graph_0.py      its graph, run as it stands in the file, without the backend
    folder/break_0.txt     where entry 0 breaks, why, and what runs natively there
    folder/constants.pkl   the objects that those sources refer to

Guards are checked again where they are meaningful in another process: not the identity of objects
that were dumped by value.
"""

import operator
import re
import types
from pathlib import Path
from typing import Any

import attrs
from stator_guards import Guard, Is

from stator._dumps._portable import dumps
from stator._entries._entry import EntryData
from stator._program._target import Continuation, Root
from stator._regions._wrapper import original_of
from stator._report import Report
from stator._subject import region_in, wrapper_in
from stator.errors import InvalidUse

RUN = '''"""{name}, compiled by stator: `from run import compiled`, to be called as the original."""

import pathlib

import stator

compiled = stator.load(pathlib.Path(__file__).parent)
'''
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.CodeType)
_BY_REFERENCE = (types.ModuleType, type, type(None), bool, *_FUNCTIONS)


@attrs.frozen(eq=False)
class Portable:
    """The data of one entry that its files do not hold."""

    target: Root | Continuation
    guards: tuple[Guard, ...]
    grad: bool | None
    constants: dict[str, Any]
    graph_name: str  # by which the entry calls its graph; empty when it has none
    graph_globals: dict[str, Any]
    graph_attributes: dict[str, Any]


def dump(compiled: object, folder: str | Path) -> Path:
    """Write everything that was generated for `compiled` into `folder`, and return its path.

    Raises InvalidUse when something that the entries refer to can be written neither as source nor
    as a pickle.
    """
    wrapper, path = wrapper_in(compiled), Path(folder)
    region, fn = region_in(wrapper), original_of(wrapper)
    path.mkdir(parents=True, exist_ok=True)
    report = Report.of(region)
    entries = [entry for place in region.all_places() for entry in place.cache.all_entries()]
    portable = []
    for number, entry in enumerate(entries):
        _write_entry(path, number, entry)
        portable.append(_portable(entry))
    (path / "report.txt").write_text(report.text(guards=True) + "\n")
    (path / "run.py").write_text(RUN.format(name=region.root.target.name))
    (path / "constants.pkl").write_bytes(dumps((fn, region.root.target, portable)))
    return path


def _write_entry(path: Path, number: int, entry: Any) -> None:
    data: EntryData = entry.data
    head = f'"""Entry {number}: {data.target.name}."""\n\n'
    (path / f"entry_{number}.py").write_text(head + data.source)
    (path / f"guards_{number}.py").write_text(head + str(getattr(entry.guards, "source", "")))
    if data.graph is not None:
        (path / f"graph_{number}.py").write_text(f"{head}import torch\n\n{graph_source(data)}\n")
    if data.reason is not None:
        (path / f"break_{number}.txt").write_text(f"{data.reason}\n{_stubs(data)}\n")


def graph_source(data: EntryData) -> str:
    if not data.graph_text:
        raise InvalidUse(
            "the text of graphs was not kept", "compile without options={'keep_text': False}"
        )
    return data.graph_text.strip()


def _stubs(data: EntryData) -> str:
    """The frames at the break, in the order of a traceback; the last one's instruction runs
    natively."""
    site = next((value for value in data.namespace.values() if hasattr(value, "point")), None)
    if site is None:
        return ""
    lines = ["runs natively, in frames that look like these:"]
    for frame in site.point.frames:
        raw, instruction = frame.code.raw, frame.instruction
        lines.append(
            f'  File "{raw.co_filename}", line {instruction.positions[0]}, in {raw.co_qualname}'
        )
        lines.append(f"    {instruction.op} {'' if instruction.arg is None else instruction.arg}")
    return "\n".join([*lines, f"state: {', '.join(site.point.parameters)}"])


def _portable(entry: Any) -> Portable:
    data: EntryData = entry.data
    graph = re.search(r"g = (\w+)\(", data.source) if data.graph is not None else None
    graph_name = graph.group(1) if graph else ""
    constants = {name: value for name, value in data.namespace.items() if name != graph_name}
    guards = [
        guard for guard in getattr(entry.guards, "guards", ()) if _means_anything_elsewhere(guard)
    ]
    if not graph_name:
        return Portable(data.target, tuple(guards), _grad(entry), constants, "", {}, {})

    paths = [
        str(node.target)
        for node in data.graph.graph.nodes
        if node.op in ("get_attr", "call_module")
    ]
    attributes = {path: operator.attrgetter(path)(data.graph) for path in paths}

    return Portable(
        data.target,
        tuple(guards),
        _grad(entry),
        constants,
        graph_name,
        _graph_globals(data),
        attributes,
    )


def _grad(entry: Any) -> bool | None:
    """Return the grad mode that the entry requires. Other global state is the responsibility of
    whoever runs the dump."""
    states = [
        g.kind
        for g in getattr(entry.guards, "guards", ())
        if type(g.kind).__name__ == "GlobalState"
    ]
    return states[0].described.startswith("grad on") if states else None


def _means_anything_elsewhere(guard: Guard) -> bool:
    if isinstance(guard.kind, Is) and not isinstance(guard.kind.held.get(), _BY_REFERENCE):
        return False
    try:
        dumps(guard)
    except InvalidUse:
        return False
    return True


def _graph_globals(data: EntryData) -> dict[str, Any]:
    namespace = type(data.graph).forward.__globals__
    used = set(re.findall(r"\w+", data.graph_text))
    return {
        name: value
        for name, value in namespace.items()
        if name in used and not name.startswith("__")
    }
