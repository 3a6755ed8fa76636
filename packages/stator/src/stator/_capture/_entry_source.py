"""Lines of generated entries, from what the emitter of a trace collected."""

from typing import Any

import torch
from stator_bytecode import Goto, Site
from stator_variables import InferenceModes, as_inference

from stator._capture._trace import TraceResult


def ending(traced: TraceResult, site: Site | None) -> str:
    """Return the last line of an entry: it returns the result, or the state with which `site`
    continues."""
    if site is None:
        return f"return {traced.result}"
    emitter = traced.emitter
    values = ", ".join(traced.values)
    return f"return {emitter.capture(Goto, 'Goto')}({emitter.capture(site, 'site')}, [{values}])"


def inference_marks(emitter: Any) -> list[str]:
    """Return the line that marks results as inference tensors: the graph only has gradients
    switched off."""
    examples = [traced.example for traced in emitter.outputs]
    tensors = [(i, made) for i, made in enumerate(examples) if isinstance(made, torch.Tensor)]
    made = [i for i, example in tensors if example.is_inference()]
    plain = [i for i, example in tensors if i not in made and not example.requires_grad]

    if not emitter.t.state(InferenceModes).ever or not (made or plain):
        return []
    return [f"g = {emitter.capture(as_inference)}(g, {made}, {plain})"]
