"""Module stacks of nodes, in the form that torch.export expects of what it traces.

    self.layers.0#3@1    ("self.layers.0", Linear)     the key, path and class of a captured graph
    _export_root...      ("layers.0", Linear)          in a program that is exported

torch.export replaces the prefix by `L__self__`; a graph that was exported before has this one.
"""

from torch import fx

ROOT, EXPORTED_ROOT = "_export_root", "L__self__"


def prepare_module_stacks(module: fx.GraphModule, owner: str) -> None:
    """Rewrite the stacks of a graph and its bodies; `owner` is the name of the module itself."""
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            for node in part.graph.nodes:
                stack = node.meta.get("nn_module_stack", {})
                if stack:
                    node.meta["nn_module_stack"] = {
                        _key(key, owner): (_path(path, owner), cls)
                        for key, (path, cls) in stack.items()
                    }


def _key(key: str, owner: str) -> str:
    if key.startswith(EXPORTED_ROOT):
        return ROOT + key.removeprefix(EXPORTED_ROOT)
    path, _, number = key.partition("#")
    inner = _path(path, owner)
    _, at, call = number.partition("@")
    return f"{ROOT}.{inner}{at}{call}" if inner else ROOT


def _path(path: str, owner: str) -> str:
    return "" if path == owner else path.removeprefix(f"{owner}.")
