"""`load_dump`: a dumped function, run from its files."""

import linecache
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import torch
from stator_bytecode import FlatState, Goto, Point, drive
from stator_guards import compile_guards

from stator._dumps._dump import Portable
from stator._dumps._portable import loads
from stator._program._fallback import EagerFallback
from stator._program._target import Continuation, Root
from stator._regions._region import NOTHING
from stator._regions._wrapper import make_wrapper
from stator.errors import InvalidUse

Check = Callable[..., bool]


@attrs.define(eq=False)
class Loaded:
    """The entries of a dump, by the place they start at (None: the start of the function)."""

    root: Root
    entries: dict[Point | None, list[tuple[Check, Callable[..., Any]]]] = attrs.field(factory=dict)
    newest: list[Any] = attrs.field(factory=lambda: [NOTHING])

    def run(self, state: FlatState) -> Any:
        return self.finish(self._enter(None, self.root, state))

    def finish(self, result: object) -> Any:
        if type(result) is Goto:
            return drive(result.site, result.take(), self._dispatch)
        return result.run() if type(result) is EagerFallback else result

    def _dispatch(self, point: Point, state: Sequence[Any]) -> Any:
        result = self._enter(point, Continuation(point), tuple(state))
        return result.run() if type(result) is EagerFallback else result

    def _enter(self, point: Point | None, target: Root | Continuation, state: FlatState) -> object:
        """Run the first dumped entry whose guards hold; without one, run eagerly, as nothing is
        compiled here."""
        for check, run in self.entries.get(point, ()):
            if check(*state):
                return run(*state)
        return EagerFallback(target, state)


def load_dump(folder: str | Path) -> Any:
    """The function that `dump` wrote into `folder`. Unpickles: load only what you trust."""
    path = Path(folder)
    if not (path / "constants.pkl").exists():
        raise InvalidUse(f"{str(path)!r} holds no dump", "pass the folder that stator.dump wrote")
    fn, root, portables = loads((path / "constants.pkl").read_bytes())
    loaded = Loaded(root)
    for number, portable in enumerate(portables):
        point = portable.target.point if isinstance(portable.target, Continuation) else None
        pair = _check(portable), _entry(path, number, portable)
        loaded.entries.setdefault(point, []).append(pair)
    return make_wrapper(fn, loaded, root)


def _check(portable: Portable) -> Check:
    check = compile_guards(portable.guards, portable.target.parameters, watch=False).check
    grad = portable.grad
    return lambda *state: grad in (None, torch.is_grad_enabled()) and check(*state)


def _entry(path: Path, number: int, portable: Portable) -> Callable[..., Any]:
    namespace = dict(portable.constants)
    if portable.graph_name:
        namespace[portable.graph_name] = _graph(path / f"graph_{number}.py", portable)
    made = _executed(path / f"entry_{number}.py", namespace)
    run: Callable[..., Any] = next(
        value for name, value in made.items() if name.startswith("entry_")
    )
    return run


def _graph(path: Path, portable: Portable) -> object:
    graph: Any = _executed(path, dict(portable.graph_globals))["GraphModule"]()
    for name, value in portable.graph_attributes.items():
        owner, _, last = name.rpartition(".")
        setattr(graph.get_submodule(owner), last, value)
    return graph.forward


def _executed(path: Path, namespace: dict[str, Any]) -> dict[str, Any]:
    """Execute a file of the dump, and return the namespace that it fills."""
    text = path.read_text()
    linecache.checkcache(str(path))
    exec(compile(text, str(path), "exec"), namespace)
    return namespace
