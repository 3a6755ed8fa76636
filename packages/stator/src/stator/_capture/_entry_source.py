"""Lines of generated entries, from what the emitter of a trace collected."""

from stator_bytecode import Goto, Site

from stator._capture._trace import TraceResult


def ending(traced: TraceResult, site: Site | None) -> str:
    """Return the last line of an entry: it returns the result, or the state with which `site`
    continues."""
    if site is None:
        return f"return {traced.result}"
    emitter = traced.emitter
    values = ", ".join(traced.values)
    return f"return {emitter.capture(Goto, 'Goto')}({emitter.capture(site, 'site')}, [{values}])"
