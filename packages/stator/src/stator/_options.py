"""The options of a compilation, validated once, and the layers that it runs through."""

import difflib
import functools
import os
import sys
import types
from collections.abc import Callable, Hashable, Mapping
from importlib.metadata import entry_points
from typing import Any

import attrs
import torch
from stator_backends import Backend, configure, lookup
from stator_bytecode import DEFAULT, HandlerTable, OpcodeHandler
from stator_guards import Guard, GuardSet, compile_guards
from stator_variables import DEFAULT_HANDLERS, Space, SymbolicDomain

from stator import _module
from stator._deferred_warning import defer_warning
from stator._stress import MODES, is_mode, stressed
from stator._torch_settings import dynamic_by_settings, setting, warn_of_settings
from stator.errors import InvalidOption, InvalidUse, backend_boundary


def output_graph(places: Any, capture_data: bool = False) -> object:
    """The default graph layer, imported by the first trace: it brings sympy, half the time of
    importing everything."""
    from stator_subgraphs import OutputGraph

    return OutputGraph(places, capture_data=capture_data)


@functools.cache  # installed distributions are enumerated once per process
def installed_operators() -> Mapping[Any, Any]:
    """Merge the higher-order operators of the default graph layer with the installed ones.

    A distribution announces its table under the entry point group `stator_operators`. One that
    cannot be imported is reported in a warning and left out: it need not concern this program.
    """
    from stator_subgraphs import OPERATORS

    tables = []
    for point in entry_points(group="stator_operators"):
        try:
            tables.append(point.load())
        except Exception as error:  # importing a distribution of somebody else may raise anything
            text = f"the operators {point.name!r} ({point.value}) are not available: {error!r}"
            defer_warning(UserWarning(text))

    return OPERATORS.merged_with(*tables)


_default: list[str | Callable[..., Any]] = []


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Set the backend of compilations that name none.

    None: that of `torch.compiler.set_default_backend`.
    """
    if backend is not None:
        with backend_boundary():
            lookup(backend)
    _default[:] = () if backend is None else (backend,)


def default_backend() -> str | Callable[..., Any]:
    """Return the backend of compilations that name none."""
    if _default:
        return _default[0]
    registry = sys.modules.get("torch._dynamo.backends.registry")
    get = getattr(registry, "get_default_backend", None)
    return "inductor" if get is None else get()


def disabled_by_environment() -> bool:
    """Return True where the environment or `torch._dynamo.config.disable` turns compilation off.

    The variables are torch's: `TORCH_COMPILE_DISABLE` and `TORCHDYNAMO_DISABLE`. A value that the
    program has assigned to the setting of torch takes precedence, as it does for torch.compile.
    """
    config = sys.modules.get("torch._dynamo.config")
    if config is not None and config.disable:
        return True
    if os.environ.get("TORCHDYNAMO_DISABLE") == "1":
        return True
    return config is None and os.environ.get("TORCH_COMPILE_DISABLE") == "1"


def guard_set(guards: list[Guard], parameters: tuple[str, ...]) -> GuardSet:
    """The default guard layer: of root objects, modules and optimizers are likely to be given to
    the next calls again."""
    return compile_guards(guards, parameters, is_lasting=is_lasting)


def is_lasting(value: object) -> bool:
    return issubclass(type(value), torch.nn.Module | torch.optim.Optimizer)


@attrs.frozen
class Stack:
    """The layers a compilation runs through; a fork passes one with its own parts.

    `operators` are handlers as well, made by the first trace: their keys need all of torch.
    """

    guards: Callable[[list[Guard], tuple[str, ...]], GuardSet] = guard_set
    graph: Callable[..., Any] = output_graph
    domain: Callable[[Space], Any] = SymbolicDomain
    handlers: Mapping[Any, Any] = DEFAULT_HANDLERS.merged_with(_module.handlers)
    operators: Callable[[], Mapping[Any, Any]] = installed_operators
    _all: list[Mapping[Any, Any]] = attrs.field(factory=list, init=False, eq=False, repr=False)

    def all_handlers(self) -> Mapping[Any, Any]:
        """`handlers` and `operators`, merged by the first trace."""
        if not self._all:
            self._all.append(
                HandlerTable("callable", dict(self.handlers)).merged_with(self.operators())
            )
        return self._all[0]


OURS = (
    "recompile_limit",
    "fallback",
    "break_everywhere",
    "oracle",
    "compiled_autograd",
    "repeat_effects",
    "keep_text",
    "capture_data",
    "check",
)


TOTAL_LIMIT = 64


@attrs.frozen
class Options:
    """One compilation's settings. `backend` is configured already."""

    backend: Backend
    fullgraph: bool = False
    dynamic: bool | None = None
    stack: Stack = attrs.field(factory=Stack)
    recompile_limit: int = 8
    fallback: bool = False  # a backend that fails: run plainly instead of raising
    break_everywhere: bool | str | int = False  # stress: see `_stress.py`
    # run the plain function too, and compare; also STATOR_ORACLE=1 in the environment
    oracle: bool = False
    # repeat the effects of a checkpointed function when it is computed again, as eager autograd
    # does
    repeat_effects: bool = True
    # capture the backward passes that the function starts, for the same backend
    compiled_autograd: bool = False
    # sizes and numbers that data decides as unbacked symbols; None: if `fullgraph`
    capture_data: bool | None = None
    check: bool = False  # look for faults in every graph; also STATOR_CHECK=1 in the environment
    # keep each graph's text for the report, since a backend may take the graph apart
    keep_text: bool = True
    opcodes: Mapping[str, OpcodeHandler] = attrs.field(init=False, eq=False, repr=False)
    key: int = attrs.field(init=False, eq=False, repr=False)
    """The identity of the backend, which may be one that cannot be hashed; the options keep it
    alive."""

    total_limit: int = attrs.field(default=TOTAL_LIMIT, kw_only=True)
    """Entries that are made for one object at one place, those that were dropped included."""
    static_types: frozenset[type] = attrs.field(default=frozenset(), kw_only=True)
    """Types of numbers that are constants, whether they change or not."""
    disabled: bool = attrs.field(default=False, kw_only=True)
    """Nothing is compiled."""
    name: str = attrs.field(default="", kw_only=True)
    """The name in reports and warnings, in place of that of the function."""
    sharing: Hashable = attrs.field(default=None, kw_only=True, eq=False, repr=False)
    """A key that is equal for options with which entries may be shared; None: not with any other
    compilation."""

    @opcodes.default
    def _opcodes(self) -> Mapping[str, OpcodeHandler]:
        return stressed(self.break_everywhere) if self.break_everywhere else DEFAULT

    @key.default
    def _key(self) -> int:
        return id(self.backend)

    @property
    def captures_data(self) -> bool:
        return self.fullgraph if self.capture_data is None else self.capture_data


def make_options(  # `compile` hands on what it was given, in its own order
    backend: str | Callable[..., Any] | None = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    stack: Stack | None = None,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: None = None,
    name: str | None = None,
    disable: bool = False,
) -> Options:
    """Sort ours from the backend's. Raises UnknownBackend, InvalidUse."""
    if shapes_spec is not None:
        raise InvalidUse("shapes_spec is not supported", "mark dimensions with stator.mark_dynamic")
    backend = default_backend() if backend is None else backend
    given = dict(options or {})
    ours = {**_from_surroundings(), **_taken_out(given)}
    if recompile_limit is not None:
        ours["recompile_limit"] = recompile_limit
    dynamic = dynamic_by_settings() if dynamic is None else dynamic
    warn_of_settings()
    _check_types(fullgraph, dynamic, ours)
    if not isinstance(backend, str) and not callable(backend):
        raise InvalidUse(
            f"{backend!r} is not a backend", "pass a name (see list_backends) or a callable"
        )
    with backend_boundary():
        found = lookup(backend)
        _check_unknown(given)
        configured = configure(found, mode, given or None, dynamic)
    facts = fullgraph, dynamic, id(stack), mode, _typed(given), _typed(ours)
    sharing = None if isolate_recompiles else _hashable((_identity(found), *facts))
    ours |= {"disabled": disable or disabled_by_environment(), "name": name or ""}
    return Options(configured, fullgraph, dynamic, stack or Stack(), **ours, sharing=sharing)


def with_backend(options: Options, backend: str | Callable[..., Any]) -> Options:
    """Return the same options with another backend, in its default mode."""
    with backend_boundary():
        found = lookup(backend)
    sharing = None if options.sharing is None else (_identity(found), options.sharing)
    return attrs.evolve(options, backend=found, sharing=sharing)


def _taken_out(given: dict[str, Any]) -> dict[str, Any]:
    """Take the options out that no backend gets, and return those of stator."""
    if given.pop("guard_filter_fn", None) is not None:
        defer_warning(UserWarning("guard_filter_fn is not called: all guards are checked"))
    return {name: given.pop(name) for name in OURS if name in given}


def _from_surroundings() -> dict[str, Any]:
    """Return options for the environment, and for the settings of `torch._dynamo.config` that the
    program has changed."""
    captures = setting("capture_scalar_outputs") or setting("capture_dynamic_output_shape_ops")
    static = [cls for cls in (int, float) if setting(f"specialize_{cls.__name__}")]
    found = {
        "oracle": os.environ.get("STATOR_ORACLE") == "1",
        "check": os.environ.get("STATOR_CHECK") == "1",
        "recompile_limit": setting("recompile_limit"),
        "total_limit": setting("accumulated_recompile_limit"),
        "fallback": setting("suppress_errors") or None,
        "capture_data": captures or None,
        "static_types": frozenset(static) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _identity(backend: object) -> Hashable:
    """Return a key of a backend, which the options keep alive; a bound method is a new object each
    time."""
    if isinstance(backend, types.MethodType):
        return id(backend.__self__), id(backend.__func__)
    return id(backend)


def _typed(given: Mapping[str, Any]) -> tuple[Hashable, ...]:
    return tuple((name, type(value), value) for name, value in sorted(given.items()))


def _hashable(key: Hashable) -> Hashable:
    """Return None in place of a key with values that cannot be compared."""
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _check_unknown(given: Mapping[str, Any]) -> None:
    """A misspelt option of ours would reach the backend as one of its own."""
    for name in given:
        if close := difflib.get_close_matches(name, OURS, n=1, cutoff=0.8):
            raise InvalidOption(f"unknown option {name!r}", f"did you mean {close[0]!r}?", name)


def _check_types(fullgraph: object, dynamic: object, ours: Mapping[str, object]) -> None:
    """A wrong type must not wait until something reads it."""
    flags = {
        "recompile_limit": 1,
        "break_everywhere": False,
        **{name: value for name, value in ours.items() if name in OURS},
        "fullgraph": fullgraph,
        "dynamic": dynamic,
    }
    limit, given = flags.pop("recompile_limit"), flags.pop("break_everywhere")
    if not is_mode(given):
        expected = f"expected True, False, a number or one of {', '.join(map(repr, MODES))}"
        raise InvalidOption(
            f"break_everywhere={given!r} is not valid", expected, "break_everywhere"
        )
    for name, value in flags.items():
        if not isinstance(value, bool) and (
            value is not None or name not in ("capture_data", "dynamic")
        ):
            raise InvalidOption(f"{name}={value!r} is not valid", "expected True or False", name)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InvalidOption(
            f"recompile_limit={limit!r} is not valid", "expected a positive int", "recompile_limit"
        )
