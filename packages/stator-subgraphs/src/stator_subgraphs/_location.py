"""The location of the user's program in the forms of torch: node metadata, and stacks for its own
messages.

Formatting is cached by line, so that a thousand nodes made ten calls deep read each source line
once.
"""

import copy
import linecache
import traceback
from collections.abc import Iterator
from typing import Any

import attrs
from stator_bytecode.errors import NOWHERE, SourceSpan
from stator_variables import TraceLocation, TraceLocations
from torch.fx.proxy import _COPY_META_FIELDS
from torch.utils._traceback import format_frame

KEPT = ("stack_trace", *_COPY_META_FIELDS)
"""The metadata that a node keeps when it is traced again: its first line and module, and marks of
users."""

ModuleStack = dict[str, tuple[str, type]]


@attrs.define(eq=False)
class LiveStack:
    """A substitute for the frame list of a `TracingContext`, read only when torch formats a message
    or a guard.

    It records the text of each line, so that a guard formatted by torch can be traced back to the
    line.
    """

    places: TraceLocations
    spans: dict[str, SourceSpan] = attrs.Factory(dict)

    def __iter__(self) -> Iterator[traceback.FrameSummary]:
        for span in self.places.current().frames:
            frame = traceback.FrameSummary(span.filename, span.line, span.function)
            self.spans[format_frame(frame, line=True)] = span
            yield frame

    def __len__(self) -> int:
        return len(self.places.current().frames)


@attrs.define(eq=False)
class Location:
    """Node metadata for the place the program is at."""

    places: TraceLocations
    stack: LiveStack = attrs.field()
    _lines: dict[tuple[str, int | None, str], str] = attrs.Factory(dict)
    _modules: dict[tuple[tuple[str, str, type], ...], ModuleStack] = attrs.Factory(dict)
    # where the program was: modes are left after it raised, and locals dropped
    _last: tuple[SourceSpan, ...] = ()

    @stack.default
    def _stack(self) -> LiveStack:
        return LiveStack(self.places)

    def span(self) -> SourceSpan:
        frames = self.places.current().frames
        return frames[-1] if frames else NOWHERE

    def annotate(self, meta: dict[str, Any]) -> None:
        place: TraceLocation = self.places.current()
        self._last = place.frames or self._last
        meta["stack_trace"] = "".join(map(self._line, self._last or (NOWHERE,)))
        meta["program_frames"] = self._last
        if place.modules and not place.original:
            meta["nn_module_stack"] = self._module_stack(place.modules)
        meta["began"] = place.began
        if place.caught:
            meta["caught"] = True
        if place.catches_operators:
            meta["catches_operators"] = True

        if place.has_except:
            meta["has_except"] = True
        if place.handled:
            meta["handled"] = True
        meta.update(
            {field: copy.copy(place.original[field]) for field in KEPT if field in place.original}
        )
        if place.custom:
            meta["custom"] = {**meta.get("custom", {}), **place.custom}

    def _line(self, span: SourceSpan) -> str:
        key = (span.filename, span.line, span.function)
        if (text := self._lines.get(key)) is None:
            code = linecache.getline(span.filename, span.line or 0).strip()
            text = f"  {span}\n" + (f"    {code}\n" if code else "")
            self._lines[key] = text
        return text

    def _module_stack(self, modules: tuple[tuple[str, str, type], ...]) -> ModuleStack:
        if (stack := self._modules.get(modules)) is None:
            stack = self._modules[modules] = {key: (path, cls) for key, path, cls in modules}
        return stack.copy()  # a pass that edits one node's metadata must not edit the others'
