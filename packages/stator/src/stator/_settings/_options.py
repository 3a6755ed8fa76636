"""The options of a compilation, validated once."""

import difflib
import os
import sys
import types
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import attrs
from stator_backends import Backend, configure, lookup, spec_of
from stator_bytecode import DEFAULT, OpcodeHandler

from stator._settings import _captures
from stator._settings._deferred_warning import defer_warning
from stator._settings._guard_filter import Filter
from stator._settings._logs import log_into
from stator._settings._shapes_spec import ShapesSpec
from stator._settings._stack import Stack
from stator._settings._stress import MODES, is_mode, stressed
from stator._settings._torch_settings import dynamic_by_settings, setting, warn_of_settings
from stator.errors import InvalidOption, InvalidUse, backend_boundary

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


OURS = {
    "recompile_limit": "entries that one object may have at one place",
    "fallback": "run eagerly where the backend fails, instead of raising",
    "break_everywhere": "break at every place of a kind, for tests: see `_stress.py`",
    "oracle": "run the original too, and compare",
    "compiled_autograd": "capture the backward passes that start in the function",
    "repeat_effects": "repeat side effects of a checkpointed function that is computed again",
    "keep_text": "keep the text of each graph for the report",
    "capture_data": "sizes and numbers that data decides are symbols; None: under `fullgraph`",
    "check": "look for faults in every graph",
    "measure": "count and time the calls of entries, for the report",
    "uncompiled": "operators that run as they are although the backend compiles: 'warn', 'error' "
    "or 'allow'; None: an error under `fullgraph`, a warning else",
    "guard_filter_fn": "a function that decides which guards are checked: see `_guard_filter.py`",
    "regions": "equal blocks are captured and compiled once: 'auto', 'always' or 'off'",
    "without": 'captures that are switched off, `"*"` for all: the program breaks in their '
    "place; `stator.list_captures()` has the names",
    "tiered": "graphs run as they are while another thread compiles them",
    "cache": "traces are kept on disk for later processes: see `_disk_cache.py`",
}
"""The keys of `options` that are no backend's, and the effect of each."""
ENVIRONMENT = {
    "oracle": "STATOR_ORACLE",
    "check": "STATOR_CHECK",
    "measure": "STATOR_MEASURE",
    "cache": "STATOR_CACHE",
}
"""The variables that switch an option on with the value 1."""


RECOMPILE_LIMIT, TOTAL_LIMIT = 8, 64


@attrs.frozen
class Options:
    """One compilation's settings: `backend` is configured already, `OURS` describes the rest."""

    backend: Backend
    fullgraph: bool = False
    dynamic: bool | None = None
    stack: Stack = attrs.field(factory=Stack)
    recompile_limit: int = RECOMPILE_LIMIT
    fallback: bool = False
    break_everywhere: bool | str | int = False
    oracle: bool = False
    repeat_effects: bool = True
    compiled_autograd: bool = False
    capture_data: bool | None = None
    check: bool = False
    measure: bool = False
    keep_text: bool = True
    uncompiled: str | None = None
    guard_filter_fn: Filter | None = None
    regions: str = "auto"
    without: tuple[str, ...] = ()
    tiered: bool = False
    cache: bool = False
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
    shapes_spec: ShapesSpec | None = attrs.field(default=None, kw_only=True, eq=False)
    """The sizes and numbers that are symbols, where the program has named them."""
    shipped: Any = attrs.field(default=None, kw_only=True, eq=False, repr=False)
    """The `ShippedEntries` in place of traces, for an object of `stator.load`."""
    sharing: tuple[Hashable, ...] | None = attrs.field(
        default=None, kw_only=True, eq=False, repr=False
    )
    """A key that is equal for options with which entries may be shared; None: not with any other
    compilation."""
    settings: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, eq=False, repr=False)
    """The options that settings of torch gave when they were read last."""
    passed: frozenset[str] = attrs.field(default=frozenset(), kw_only=True, eq=False, repr=False)
    """The options that the program has passed, which no setting replaces."""

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
    shapes_spec: object = None,
    name: str | None = None,
    disable: bool = False,
) -> Options:
    """Sort ours from the backend's. Raises UnknownBackend, InvalidUse."""
    spec = _described(shapes_spec, dynamic)
    backend = default_backend() if backend is None else backend
    given = dict(options or {})
    _check_mode(mode, options)
    passed = _passed(given, {"recompile_limit": recompile_limit, "dynamic": dynamic})
    _check_types({**passed, "fullgraph": fullgraph})
    if "without" in passed:
        passed["without"] = _captures.checked(passed["without"], (stack or Stack()).tables)

    _check_tiered(passed)
    _follow_others()
    settings = _by_settings()
    chosen = {**settings, **passed}
    dynamic = chosen.pop("dynamic")
    registered, configured = _backends(backend, mode, given, dynamic)
    dynamic = _taken_by(configured, dynamic)
    facts = fullgraph, id(stack), mode, _typed(given), _typed(passed), spec  # by its identity
    is_alone = isolate_recompiles or passed.get("measure", False)  # calls of others do not count
    sharing = None if is_alone else _hashable((_identity(registered), *facts))

    chosen |= {"disabled": disable or disabled_by_environment(), "name": name or ""}
    chosen |= {"shapes_spec": spec, "settings": settings, "passed": frozenset(passed)}
    chosen["sharing"] = sharing and (sharing, *settings.values())
    return Options(configured, fullgraph, dynamic, stack or Stack(), **chosen)


def _backends(
    backend: object, mode: str | None, given: Mapping[str, Any], dynamic: bool | None
) -> tuple[Backend, Backend]:
    """Return the backend that was named, and that one configured by the options given to it."""
    if not isinstance(backend, str) and not callable(backend):
        raise InvalidUse(
            f"{backend!r} is not a backend", "pass a name (see list_backends) or a callable"
        )

    with backend_boundary():
        registered = lookup(backend)
        _check_unknown(given)
        return registered, configure(registered, mode, given or None, dynamic)


_OF_TORCH = frozenset({"guard_filter_fn"})
"""Options of ours that are options of `torch.compile`, too."""


def _check_mode(mode: str | None, options: Mapping[str, Any] | None) -> None:
    """Raise InvalidOption for a mode together with options that `torch.compile` would be given: a
    mode is a set of them."""
    if mode is None or options is None:
        return
    is_ours = options and OURS.keys() - _OF_TORCH >= options.keys()
    if not is_ours:
        problem = f"mode={mode!r} and options={dict(options)!r} are both given"
        raise InvalidOption(problem, "pass one of them: a mode is a set of options", "mode")


def _check_tiered(passed: Mapping[str, object]) -> None:
    """Raise InvalidOption where a call would have to wait for the compiler: to raise its error."""
    if passed.get("tiered") and passed.get("uncompiled") == "error":
        problem = "tiered and uncompiled='error' are both given"
        hint = "leave one of them out: what runs uncompiled is known only after the call"
        raise InvalidOption(problem, hint, "tiered")


def _passed(given: dict[str, Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Take our options from those that are given, and return them with those of the environment and
    of keywords."""
    ours = {name: os.environ.get(each) == "1" for name, each in ENVIRONMENT.items()}
    ours |= {name: given.pop(name) for name in OURS if name in given}
    return ours | {name: value for name, value in keywords.items() if value is not None}


def _described(shapes_spec: object, dynamic: bool | None) -> ShapesSpec | None:
    if shapes_spec is None:
        return None
    if dynamic is not None:
        raise InvalidUse("dynamic and shapes_spec are both given", "leave one of them out")
    return ShapesSpec.of(shapes_spec)


def with_backend(options: Options, backend: str | Callable[..., Any]) -> Options:
    """Return the same options with another backend, in its default mode."""
    with backend_boundary():
        found = lookup(backend)
    sharing = options.sharing and ((_identity(found), options.sharing[0]), *options.sharing[1:])
    dynamic = _taken_by(found, options.dynamic)
    return attrs.evolve(options, backend=found, dynamic=dynamic, sharing=sharing, shipped=None)


def _taken_by(backend: Backend, dynamic: bool | None) -> bool | None:
    """Return `dynamic`, or False for a backend that takes no symbolic sizes."""
    spec = spec_of(backend)
    if spec.symbolic_shapes:
        return dynamic
    if dynamic:
        text = f"dynamic=True has no effect: {spec.name!r} takes no symbolic sizes"
        defer_warning(UserWarning(text))
    return False


def _by_settings() -> dict[str, Any]:
    """Return the options that settings of `torch._dynamo.config` decide, unless the program passes
    them."""
    captures = setting("capture_scalar_outputs") or setting("capture_dynamic_output_shape_ops")
    static = (cls for cls in (int, float) if setting(f"specialize_{cls.__name__}"))
    return {
        "recompile_limit": setting("recompile_limit") or RECOMPILE_LIMIT,
        "total_limit": setting("accumulated_recompile_limit") or TOTAL_LIMIT,
        "fallback": setting("suppress_errors") or False,
        "capture_data": captures or None,
        "static_types": frozenset(static),
        "dynamic": dynamic_by_settings(),
    }


def with_settings(options: Options) -> Options:
    """Return the options as the settings of torch are now; the same object if they are
    unchanged."""
    _follow_others()
    if (now := _by_settings()) == options.settings:
        return options
    changed = {name: value for name, value in now.items() if name not in options.passed}
    if "dynamic" in changed:
        changed["dynamic"] = _taken_by(options.backend, changed["dynamic"])
    sharing = options.sharing and (options.sharing[0], *now.values())
    return attrs.evolve(options, **changed, settings=now, sharing=sharing)


def _follow_others() -> None:
    """Follow the settings that are no options, or warn of them."""
    warn_of_settings()
    if file := setting("log_file_name"):
        log_into(file)


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


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_flag_or_none(value: object) -> bool:
    return value is None or _is_flag(value)


UNCOMPILED = ("warn", "error", "allow")
"""The policies for operators that run uncompiled."""
REGIONS = ("auto", "off", "always")
"""The policies for equal blocks."""


_VALID: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "recompile_limit": (lambda value: type(value) is int and value > 0, "a positive int"),
    "break_everywhere": (is_mode, f"True, False, a number or one of {', '.join(map(repr, MODES))}"),
    "guard_filter_fn": (lambda value: value is None or callable(value), "a function or None"),
    "capture_data": (_is_flag_or_none, "True or False"),
    "uncompiled": (
        lambda value: value is None or value in UNCOMPILED,
        f"one of {', '.join(map(repr, UNCOMPILED))}",
    ),
    "regions": (
        lambda value: value in REGIONS,
        f"one of {', '.join(map(repr, REGIONS))}",
    ),
    "without": (_captures.are_names, "a list of names of captures"),
    "dynamic": (_is_flag_or_none, "True or False"),
}
"""The test of each option that is no flag, and the values that pass it."""


def _check_types(given: Mapping[str, object]) -> None:
    """A wrong type must not wait until something reads it."""
    for name, value in given.items():
        is_valid, expected = _VALID.get(name, (_is_flag, "True or False"))
        if not is_valid(value):
            raise InvalidOption(f"{name}={value!r} is not valid", f"expected {expected}", name)
