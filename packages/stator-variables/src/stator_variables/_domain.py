"""SymbolicDomain: the operations of the Machine, each one call into the data model."""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
import types
from typing import Any

from stator_bytecode import (
    NULL,
    Broke,
    Frame,
    GeneratorState,
    Instruction,
    Invoke,
    OperationSteps,
    Raised,
    Result,
    Then,
    after,
    operation,
    settle,
)
from stator_bytecode.errors import Unsupported
from stator_guards import CapturedSource

from stator_variables import _trackers as k
from stator_variables._domain_operations import (
    delegated,
    delegated_with_hashes,
    emptying,
    receiver_in_c,
    refused,
    with_hashes,
)
from stator_variables._lifetime import _finalization, _generator_close
from stator_variables._objects import (
    _dict_entries,
    _dict_update,
    _exceptions,
    _list,
    _new_values,
    _set_members,
)
from stator_variables._objects._cell import CellTracker
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._exception import ExceptionTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._lookup import defines
from stator_variables._objects._program_error import (
    attempt,
    complain,
    complain_of_manager,
    error,
    spread_text,
    throw,
)
from stator_variables._objects._super import SuperTracker
from stator_variables._objects._text import text_of
from stator_variables._objects._tuple import TupleTracker
from stator_variables._protocols import (
    _attribute_writes,
    _attributes,
    _calls,
    _consumption,
    _containers,
    _formatting,
    _iteration,
    _matching,
    _operators,
)
from stator_variables._protocols._imports import late_import, loaded_module
from stator_variables._space import Space
from stator_variables._trace._policy import RetraceLimit
from stator_variables._trace._progress import Progress
from stator_variables._tracker import MISSING, VariableTracker, real_of

_IMPORT = builtins.__import__


class SymbolicDomain:
    """See `stator_bytecode.Domain`. Owns nothing: all state is in its `Space`.

    A subclass overrides operations by their names; names of its own begin with an underscore.
    """

    def __init_subclass__(cls) -> None:
        unknown = [name for name in vars(cls) if not name.startswith("_")]
        unknown = [name for name in unknown if not hasattr(SymbolicDomain, name)]
        if unknown:
            raise TypeError(f"no operations of a domain are called {', '.join(unknown)}")

    def __init__(self, tracing: Space) -> None:
        self.t = tracing
        self.progress = tracing.state(Progress)

    # -- bookkeeping -------------------------------------------------------------------------------
    def mark(self) -> object:
        t = self.t
        return t.journal.mark(), t.graph.mark(), self.progress.begun, t.graph.learned

    def rollback(self, mark: Any) -> None:
        self.t.journal.rollback(mark[0])
        self.t.graph.rollback(mark[1])

    def is_same_graph(self, earlier: Any, later: Any) -> bool:
        """Return True if nothing was added to the graph between two marks."""
        return bool(earlier[1] == later[1])

    def learned_in_vain(self, outcome: Broke) -> RetraceLimit | None:
        """Return the location to stop another trace at, if a rolled back part had added facts about
        sizes.

        Those cannot be removed, and the graph before the break does not need them.
        """
        *_, learned = outcome.snapshot.mark
        if self.t.policy.stop is not None or self.t.graph.learned == learned:
            return None
        return self.stop_at(outcome)

    def stop_at(self, outcome: Broke) -> RetraceLimit:
        """The instruction that broke, for another trace that ends there."""
        begun = outcome.snapshot.mark[2]
        frame, error = outcome.snapshot.frames[-1], outcome.reason
        reason = Unsupported(error.reason, error.detail, error.hint, error.where, error.once)
        return RetraceLimit(begun + 1, reason, (frame.code, frame.pc))

    def as_raised(self, caught: BaseException) -> Raised | None:
        # of ours: what one instruction does is nested too deep
        if isinstance(caught, RecursionError):
            raise self.t.unsupported(
                "too-deep", "values nested deeper than can be followed"
            ) from None
        return caught if isinstance(caught, Raised) else None

    def at(self, frame: Frame, instruction: Instruction) -> None:
        self.t.frame = frame
        self.t.instruction = instruction
        if self.t.lifetimes.stack_only and frame is self.t.machine.frames[-1]:
            _finalization.release_temporaries(self.t)
        progress, policy = self.progress, self.t.policy
        progress.begun += 1
        progress.steps += 1
        stop = policy.stop
        if stop is not None and stop.is_at(progress.begun, frame):
            raise stop.reason
        if progress.steps > policy.patience:
            self._lose_patience()

    def _lose_patience(self) -> None:
        """Break a loop after so many instructions without an operation of the graph, twice.

        The innermost frame that was there all the time loops. The first time is not enough, since
        another frame may have come to its loop only then.
        """
        frames, done, progress = self.t.machine.frames, self.t.graph.mark(), self.progress
        before = progress.waited
        progress.steps = 0
        progress.waited = (done, list(frames))
        if before is not None and before[0] == done:
            waits = [old is frame for old, frame in zip(before[1], frames, strict=False)]
            progress.looping = sum(waits) - 1
            raise self.t.unsupported(
                "long-loop", "a loop that goes on for long without a tensor operation"
            )

    # -- constants, names, imports -----------------------------------------------------------------
    def constant(self, value: object) -> Any:
        if type(value) in (tuple, frozenset) or k.is_nan(value):
            return self._constant_object(value)
        if isinstance(value, type):
            return k.ClassTracker(value)
        return k.BuiltinTracker(value) if callable(value) else k.ConstantTracker(value)

    def _constant_object(self, value: object) -> VariableTracker:
        """A tuple in the code, or a NaN, is one object however often it is loaded; an empty tuple
        is so everywhere."""
        if not value:
            return _new_values.fresh(self.t, value)
        return self.t.heap.track(
            value, CapturedSource("constant", value), lambda: self._existing(value)
        )

    def _existing(self, value: object) -> VariableTracker:
        tracker = _new_values.fresh(self.t, value)
        tracker.real, tracker.source = value, CapturedSource("constant", value)
        return tracker

    def load_global(self, frame: Frame, name: str) -> Result:
        if frame.hidden:
            return self._load_trusted(frame, name)
        if (found := self.t.lookup(frame.globals, name)) is MISSING:
            found = self.t.lookup(frame.builtins, name)
        if found is MISSING:
            throw(NameError, f"name '{name}' is not defined")
        return found

    def _load_trusted(self, frame: Frame, name: str) -> VariableTracker:
        """App-level code is ours: its globals do not change."""
        namespace = frame.globals.real
        value = namespace[name] if name in namespace else getattr(builtins, name)
        return self.t.wrap(value, CapturedSource(name, value))

    def store_global(self, frame: Frame, name: str, value: VariableTracker) -> None:
        self._store(frame.globals, name, value)

    def delete_global(self, frame: Frame, name: str) -> None:
        self._delete(frame.globals, name)

    _store = emptying(delegated(_dict_entries.set_name))

    @emptying
    def _delete(self, namespace: DictTracker, name: str) -> None:
        if _dict_entries.remove(self.t, namespace, name) is MISSING:
            throw(NameError, f"name '{name}' is not defined")

    def load_name(self, frame: Frame, name: str) -> Result:
        found = self.load_from_mapping(frame.names, name)
        return found if found is not NULL else self.load_global(frame, name)

    def store_name(self, frame: Frame, name: str, value: VariableTracker) -> None:
        self._store(frame.names, name, value)

    def delete_name(self, frame: Frame, name: str) -> None:
        self._delete(frame.names, name)

    def load_locals(self, frame: Frame) -> Result:
        return frame.names

    def load_from_mapping(self, mapping: VariableTracker, name: str) -> Result:
        if mapping.base is not dict:
            raise self.t.unsupported("class-body", "a class body with a namespace that is no dict")
        found = self.t.lookup(mapping, name)
        return NULL if found is MISSING else found

    def build_class(self, frame: Frame) -> k.BuiltinTracker:
        return k.BuiltinTracker(builtins.__build_class__)

    def import_name(
        self, frame: Frame, name: str, fromlist: VariableTracker, level: k.ConstantTracker
    ) -> VariableTracker:
        """An import of a module that is loaded already; anything else runs natively."""
        self._refuse_other_imports(frame)
        package = None
        if level.value:
            spec = self.t.lookup(frame.globals, "__package__")
            package = spec.constant() if spec is not MISSING else None
            if package:
                name = importlib.util.resolve_name("." * level.value + name, package)

        wanted = () if k.is_none(fromlist) else fromlist.constant()
        if (module := sys.modules.get(name)) is None or (level.value and package is None):
            detail = f"the import of {name}, which is not loaded yet"
            raise late_import(self.t, name, wanted, detail)
        if not isinstance(module, types.ModuleType):
            raise self.t.unsupported("import", f"the import of {name}, which is no module")
        if "__path__" in vars(module) and any(part not in vars(module) for part in wanted):
            detail = f"the import of a part of {name}, which may not be loaded yet"
            raise late_import(self.t, name, wanted, detail)

        if k.is_none(fromlist) and not level.value:
            name = name.partition(".")[0]
        return loaded_module(self.t, name)

    def _refuse_other_imports(self, frame: Frame) -> None:
        """Reject an import that does not reach the original `builtins.__import__` and an unchanged
        `sys.modules`."""
        importer = self.t.lookup(frame.builtins, "__import__")
        modules = self.t.heap.trackers.get(id(sys.modules))
        own = real_of(importer) is _IMPORT and importer.value is _IMPORT
        if not own or id(modules) in self.t.heap.changed:
            raise self.t.unsupported(
                "import", "an import after sys.modules was changed, or done by somebody else"
            )

    @operation
    def import_from(self, module: VariableTracker, name: str) -> OperationSteps:
        found = yield from attempt(
            self.t, AttributeError, MISSING, self.t.get_attribute, module, name
        )
        if found is not MISSING:
            return found
        owner = getattr(real_of(module), "__name__", "?")
        if (full := f"{owner}.{name}") in sys.modules:
            return loaded_module(self.t, full)
        raise self.t.unsupported("import", f"the import of {name} from {owner}")

    import_star = refused("import", "import * inside a function")

    # -- cells -------------------------------------------------------------------------------------
    make_cell = staticmethod(CellTracker)

    def cell_get(self, cell: CellTracker) -> Any:
        return cell.content

    @emptying
    def cell_set(self, cell: VariableTracker, content: Any) -> None:
        self.t.write(cell, content=content)

    # -- operators ---------------------------------------------------------------------------------
    def unary(self, operator: str, value: VariableTracker) -> Result:
        if operator == "not":
            return _operators.negated(self.t, value)
        return _operators.unary(self.t, operator, value)

    binary = emptying(delegated_with_hashes(_operators.binary))
    compare = delegated_with_hashes(_operators.compare)
    contains = delegated_with_hashes(_operators.contains)
    identical = delegated(_operators.identical)
    truth = delegated_with_hashes(_operators.truth)

    from_bool = staticmethod(k.ConstantTracker)
    is_none = staticmethod(k.is_none)

    # -- attributes and items ----------------------------------------------------------------------
    get_attribute = delegated(_attributes.get_attribute)

    def load_method(self, value: VariableTracker, name: str) -> object:
        """The attribute alone: a bound method calls the same function with the same receiver."""
        found = _attributes.get_method(self.t, value, name)
        return found if type(found) is Invoke else after(found, lambda method: (method, NULL))

    def load_super(
        self, frame: Frame, super_fn: Any, cls: Any, receiver: VariableTracker, name: str
    ) -> Result:
        if super_fn.real is super:
            return self.t.super_attribute(SuperTracker(cls, receiver), name)
        made = self.t.call(super_fn, [cls, receiver])
        return after(made, lambda other: self.t.get_attribute(other, name))

    set_attribute = emptying(delegated(_attribute_writes.set_attribute))

    @emptying
    def delete_attribute(self, value: VariableTracker, name: str) -> Result:
        return _attribute_writes.set_attribute(self.t, value, name, MISSING)

    get_item = delegated_with_hashes(_operators.get_item)
    set_item = emptying(delegated_with_hashes(_containers.set_item))
    delete_item = emptying(delegated_with_hashes(_containers.delete_item))

    # -- calls and functions -----------------------------------------------------------------------
    call = emptying(delegated_with_hashes(_calls.call), receiver_in_c)

    @emptying
    @with_hashes
    def call_spread(
        self, function: VariableTracker, args: VariableTracker, kwargs: VariableTracker | None
    ) -> Result:
        if not defines(self.t, args.cls, "__iter__", "__getitem__"):
            text = f"{spread_text(function, '*')} must be an iterable, not "
            complain(self.t, TypeError, text, args.cls)
        drained = self.t.drain(args, calls_len=True)
        return after(drained, lambda items: self.t.call(function, items, self._keywords(kwargs)))

    def _keywords(self, kwargs: VariableTracker | None) -> dict[str, Any]:
        if kwargs is None:
            return {}
        found = {}
        for key, value in self.t.items(kwargs):
            if not isinstance(name := key.constant(), str):
                if issubclass(key.cls, str):
                    raise self.t.unsupported(
                        "keyword-mapping", f"** with a key of class {key.cls.__name__}"
                    )
                throw(TypeError, "keywords must be strings")
            found[name] = value
        return found

    make_function = delegated(_calls.make_function)

    def complete(self, then: Then, value: Any) -> Result:
        if then.kind == "instance":
            return _calls.initialised(self.t, then.values[0], value)
        if then.kind in ("truth", "length"):
            return _operators.truth_of_result(self.t, value, then.kind)
        if then.kind == "iter":
            return _iteration.iterator_of_call(self.t, value)
        raise AssertionError(f"no operation of this domain waits with {then.kind!r}")

    # -- iteration and generators ------------------------------------------------------------------
    get_iterator = delegated_with_hashes(_iteration.get_iterator)
    next_value = delegated(_iteration.next_value)

    def make_generator(self, state: GeneratorState) -> k.GeneratorTracker:
        made = k.GeneratorTracker(state)
        lists = [self.t.lifetimes.generators]
        if _generator_close.may_clean_up(self.t, state):
            lists.append(self.t.lifetimes.cleaning_up)
        for known in lists:
            known.append(made)
            self.t.journal.record(functools.partial(known.remove, made))
        return made

    def generator_state(self, value: VariableTracker) -> GeneratorState | None:
        return getattr(value, "state", None)

    drop = delegated(_finalization.drop)
    abandon = delegated(_finalization.abandon)

    @operation
    def send(self, receiver: VariableTracker, value: VariableTracker) -> OperationSteps:
        if receiver.cls is types.CoroutineType:
            raise self.t.unsupported("async", "a step of a coroutine")
        try:
            if k.is_none(value):
                found = yield from settle(receiver.next(self.t))
            else:
                method = yield from settle(self.t.get_attribute(receiver, "send"))
                found = yield from settle(self.t.call(method, [value]))
        except Raised as raised:
            if not issubclass(raised.value.cls, StopIteration):
                raise
            return (NULL, self.stop_iteration_value(raised.value))
        return (NULL, k.NONE) if found is NULL else (found, NULL)

    def yield_from_iterator(self, value: VariableTracker) -> Result:
        if value.cls is types.CoroutineType:
            raise self.t.unsupported("async", "yield from a coroutine")
        return self.t.get_iterator(value)

    # -- building ----------------------------------------------------------------------------------
    def build_tuple(self, items: list[Any]) -> TupleTracker:
        return TupleTracker(items)

    def build_list(self, items: list[Any]) -> ListTracker:
        return ListTracker(items)

    build_set = delegated_with_hashes(_set_members.new_set)
    build_map = delegated_with_hashes(_dict_entries.new_map)

    @with_hashes
    def build_const_key_map(self, keys: TupleTracker, values: list[Any]) -> DictTracker:
        return _dict_entries.new_map(self.t, keys.items, values)

    build_string = delegated(text_of)

    def build_slice(self, parts: list[Any]) -> k.SliceTracker:
        filled = [*parts, k.NONE][:3]
        return k.SliceTracker((filled[0], filled[1], filled[2]))

    list_append = delegated(_list.append)
    list_extend = delegated_with_hashes(_list.extend_display)

    def list_to_tuple(self, target: ListTracker) -> TupleTracker:
        return TupleTracker(target.items)

    set_add = delegated_with_hashes(_set_members.set_add)
    set_update = delegated_with_hashes(_set_members.set_update)
    map_add = delegated_with_hashes(_dict_entries.store)
    dict_update = delegated_with_hashes(_dict_update.add_mapping)
    dict_merge = delegated(_dict_update.dict_merge)
    unpack = delegated_with_hashes(_consumption.unpack)
    unpack_ex = delegated_with_hashes(_consumption.unpack_ex)
    format_value = delegated(_formatting.format_value)
    build_interpolation = build_template = refused("refused-instruction", "a template string")

    # -- exceptions --------------------------------------------------------------------------------
    exception_from = delegated(_exceptions.exception_from)

    def is_made_here(self, exception: VariableTracker) -> bool:
        return exception.source is None

    def extend_traceback(self, exception: ExceptionTracker, frame: Frame) -> None:
        _exceptions.extend_traceback(self.t, exception, frame)

    def is_object(self, exception: VariableTracker) -> bool:
        return exception.source is not None

    exception_matches = delegated(_exceptions.matches)
    with_context = delegated(_exceptions.with_context)

    python_error = staticmethod(error)

    def stop_iteration_value(self, exception: ExceptionTracker) -> k.ConstantTracker:
        return exception.args[0] if exception.args else k.NONE

    exception_type = delegated(_attributes.class_of)
    exception_traceback = delegated(_exceptions.traceback_of)

    # -- with, match, groups -----------------------------------------------------------------------
    @operation
    def enter_context(self, manager: VariableTracker) -> OperationSteps:
        enter = yield from settle(self.t.special(manager, "__enter__"))
        leave = yield from settle(self.t.special(manager, "__exit__"))
        if enter is MISSING or leave is MISSING:
            complain_of_manager(self.t, manager.cls, enter is not MISSING)
        return (leave, self.t.call(enter, []))

    match_class = delegated(_matching.match_class)
    match_mapping = staticmethod(_matching.match_mapping)
    match_sequence = staticmethod(_matching.match_sequence)
    match_keys = delegated(_matching.match_keys)
    length = delegated(_containers.length)

    match_group = prepare_reraise = refused("exception-group", "except*")
