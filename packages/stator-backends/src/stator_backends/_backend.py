"""The contract of a backend: a callable from a graph and example inputs to a callable.

That is the whole contract, as everywhere in the ecosystem, so a plain function is a backend. A
backend with other capabilities than the default ones declares them in a `BackendSpec`, its
attribute `spec`; start with `spec_of`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from attrs import frozen
from torch.fx import GraphModule

from .errors import InvalidBackendOption

Compiled: TypeAlias = Callable[..., Sequence[Any]]
BoxedRun: TypeAlias = Callable[[list[Any]], Sequence[Any]]
"""A compiled graph as a function of a list that it empties."""


class Backend(Protocol):
    """Called once per graph. It owns the graph it is given; what it returns takes the placeholders
    positionally."""

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any], /) -> Compiled: ...


@frozen
class BackendSpec:
    """The capabilities of a backend. The defaults are those of a plain function."""

    name: str
    fake_inputs: bool = False  # takes example inputs without memory behind them
    symbolic_shapes: bool = True  # accepts SymInt placeholders
    training: bool = True  # what it returns may be differentiated
    boxed: bool = False  # what it returns takes one list, and empties it to free inputs early
    # False: it runs the graph as it is, relies on nothing and needs nothing set up around it
    compiles: bool = True
    wants_graph_spec: bool = False  # is called with a keyword `graph_spec`, a `GraphSpec`


@runtime_checkable
class Configurable(Protocol):
    """A backend with a mode and options, as `torch.compile` has them."""

    def configured(
        self, mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None
    ) -> Backend: ...


@frozen
class FunctionBackend:
    """A plain function together with what is known about it; equal when both are."""

    function: Backend
    spec: BackendSpec

    def __call__(self, gm: GraphModule, example_inputs: Sequence[object], **facts: Any) -> Compiled:
        return self.function(gm, example_inputs, **facts)

    def configured(
        self, mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None
    ) -> Backend:
        for option, value in {"mode": mode, "options": options}.items():
            if value is not None:
                raise InvalidBackendOption(
                    self.spec.name, option, value, "nothing: this backend takes no options"
                )
        return self


@frozen
class KeywordBackend:
    """A backend of the ecosystem, called with `mode=` and `options=` as `torch.compile` would."""

    backend: Callable[..., Compiled]
    mode: str | None
    options: tuple[tuple[str, Any], ...] | None

    @property
    def spec(self) -> BackendSpec:
        return spec_of(self.backend)

    def __hash__(self) -> int:
        return hash((self.backend, self.mode, tuple(key for key, _ in self.options or ())))

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any], **keywords: Any) -> Compiled:
        if self.mode is not None:
            keywords["mode"] = self.mode
        if self.options is not None:
            keywords["options"] = dict(self.options)
        return self.backend(gm, example_inputs, **keywords)


def spec_of(backend: Backend) -> BackendSpec:
    if isinstance(spec := getattr(backend, "spec", None), BackendSpec):
        return spec
    return BackendSpec(getattr(backend, "__name__", type(backend).__name__))


def configure(
    backend: Backend,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    dynamic: bool | None = None,
) -> Backend:
    """The backend with these settings: a value again, equal for equal settings, so it can be part
    of a cache key."""
    if mode == "default":
        mode = None
    if mode is None and not options:
        return backend
    if isinstance(backend, Configurable):
        return backend.configured(mode, options or None, dynamic)
    return KeywordBackend(backend, mode, tuple(options.items()) if options else None)
