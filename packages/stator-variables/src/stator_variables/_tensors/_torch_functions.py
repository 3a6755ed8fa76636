"""Functions of torch with handlers of their own: constructors older than `torch.tensor`
(`torch.Tensor([1, 2])`, `torch.LongTensor(3)`) as calls of today's, groups for optimisers,
`Module.__getattr__`, and queries for a compiler."""

import types
from collections.abc import Callable
from typing import Any

import torch
import torch.compiler
from stator_bytecode import Result
from torch.nn import Module

from stator_variables._defining_module import module_of
from stator_variables._handler_keys import BY_NAME
from stator_variables._objects import _dict_entries
from stator_variables._objects._dict import DictTracker
from stator_variables._objects._list import ListTracker
from stator_variables._objects._tuple import SequenceTracker, TupleTracker
from stator_variables._runtime._contents import plain_lookup
from stator_variables._space import Space
from stator_variables._tensors import _array_conversions, _torch_calls
from stator_variables._tensors._surroundings import Transforms
from stator_variables._tracker import MISSING, Args, FunctionTable, Kwargs, VariableTracker, is_a
from stator_variables._trackers import ArrayTracker, ConstantTracker, NumberTracker, TensorTracker

handlers = FunctionTable("older constructor")
_KINDS = "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()
_DTYPES = {cls: cls.dtype for cls in (getattr(torch, f"{kind}Tensor") for kind in _KINDS)}


@handlers.handles_each({torch.Tensor: None, **_DTYPES})
def construct(t: Space, args: Args, kwargs: Kwargs, of: object) -> Any:
    """Make a tensor: uninitialized from sizes, with the numbers of a list or tuple, over the memory
    of an array.

    It is on the CPU, whatever the default device is. `torch.Tensor` of a tensor is another one over
    its memory.
    """
    dtype = of or torch.get_default_dtype()
    named = {"dtype": ConstantTracker(dtype), "device": ConstantTracker(torch.device("cpu"))}
    first: Any = args[0] if args else None
    if kwargs or torch.Tensor().device.type != "cpu":
        raise t.unsupported(
            "construction", "a constructor of tensors with options, or not on the CPU"
        )
    if len(args) == 1 and of is None and is_a(first, TensorTracker):
        return _torch_calls.record_without_modes(t, torch.ops.aten.alias.default, [first], {})
    if len(args) == 1 and is_a(first, SequenceTracker) and first.cls in (list, tuple):
        return _torch_calls.record(t, torch.tensor, [first], named)

    if len(args) == 1 and is_a(first, ArrayTracker) and first.tensor.example.dim():
        return _array_conversions.from_array(t, args, named, torch.as_tensor)
    sizes = first.items if len(args) == 1 and getattr(first, "cls", None) is torch.Size else args
    if any(vt.cls is not int for vt in sizes):
        raise t.unsupported(
            "construction", "a tensor of a number, of another tensor, or of what is no number"
        )
    return _torch_calls.record(
        t, torch.empty, [TupleTracker(list(sizes) or [ConstantTracker(0)])], named
    )


@handlers.handles(torch.result_type)
def result_type(t: Space, args: Args, kwargs: Kwargs) -> Result:
    return _torch_calls.read_metadata(t, torch.result_type, args, kwargs)


_KEY_SET: Any = torch._C.DispatchKeySet


@handlers.handles(torch._C._dispatch_keys)
def dispatch_keys(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Return the dispatch keys of an input, which its guard compares."""
    vt = args[0]
    if not is_a(vt, TensorTracker) or vt.source is None or vt.data is not MISSING:
        raise t.unsupported("tensor-attribute", "the dispatch keys of a tensor that is made here")
    return ConstantTracker(torch._C._dispatch_keys(vt.real))


@handlers.handles_each([_KEY_SET.has.__func__, _KEY_SET.raw_repr.__func__])
def query_key_set(t: Space, args: Args, kwargs: Kwargs, of: Any) -> Any:
    values = [vt.constant() for vt in args]
    if kwargs or any(value is MISSING for value in values):
        raise t.unsupported("tensor-attribute", "dispatch keys that are not known while tracing")
    return ConstantTracker(of(*values))


# How optimisers and gradient clipping sort tensors before they call `torch._foreach_*`.


_GROUP: Any = torch._C._group_tensors_by_device_and_dtype


@handlers.handles(_GROUP)
def group_by_device_and_dtype(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Return `{(device, dtype): (lists, indices)}`, in the order of the C++ map, which decides by
    the first list."""
    lists, *rest = args
    wanted = rest[0] if rest else kwargs.get("with_indices", ConstantTracker(False))
    if not is_a(lists, ListTracker) or not all(is_a(item, ListTracker) for item in lists.items):
        raise t.unsupported("foreach-groups", "lists of tensors that are no lists")
    first = lists.items[0].items
    are_tensors = bool(first) and all(is_a(vt, TensorTracker) for vt in first)
    if not are_tensors or any(len(item.items) not in (0, len(first)) for item in lists.items):
        raise t.unsupported("foreach-groups", "lists of other things than tensors")
    keys, groups = [], []
    for key, (_, indices) in _GROUP([[vt.example for vt in first]], True).items():
        copies = ListTracker([_chosen(item, indices) for item in lists.items])
        numbers = map(ConstantTracker, indices if wanted.constant() else ())
        keys.append(TupleTracker(map(ConstantTracker, key)))
        groups.append(TupleTracker([copies, ListTracker(numbers)]))
    return _dict_entries.new_map(t, keys, groups)


def _chosen(items: Any, indices: list[int]) -> ListTracker:
    """Return the items at some indices; an empty list is one of values that nothing has."""
    return ListTracker([items.items[index] for index in indices] if items.items else [])


# `torch.nn.Module.__getattr__` in one step: half of all interpreted instructions were its own.
#
# Only what it does with plain dicts is done here, by the same reads and so with the same guards;
# all else is interpreted.

_FUNCTION: Any = Module.__getattr__
_CODE = _FUNCTION.__code__
_TABLES = ("_parameters", "_buffers", "_modules")
_KNOWN = (
    tuple(const for const in _CODE.co_consts if isinstance(const, str) and const.startswith("_"))
    == _TABLES
)
"""True if this version of torch searches the same tables in the same order as the code here."""


@handlers.handles(_FUNCTION)
def module_getattr(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """MISSING: to be interpreted."""
    if len(args) != 2 or not _KNOWN or _FUNCTION.__code__ is not _CODE:
        return MISSING
    module, name = args[0], args[1].constant()
    if type(name) is not str or isinstance(
        plain_lookup(module.cls, "__getattribute__"), types.FunctionType
    ):
        return MISSING
    own = t.generic_get(module, "__dict__")
    return _found_in(t, own, name) if own is module.namespace else MISSING


def _found_in(t: Space, own: VariableTracker, name: str) -> Result:
    """The first of the tables that has `name` gives it."""
    if not is_a(own, DictTracker):
        return MISSING
    for table_name in _TABLES:
        if (table := t.lookup(own, table_name)) is MISSING:
            continue
        if not is_a(table, DictTracker) or table.cls is not dict:
            return MISSING
        if (found := t.lookup(table, name)) is not MISSING:
            return found
    return MISSING


# Queries for a compilation.
#
# While stator interprets a function, `torch.compiler.is_compiling()` and its kin are true, as under
# `torch.compile`.


@handlers.handles(torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling)
def is_compiling(t: Space, args: Args, kwargs: Kwargs) -> VariableTracker:
    """Return False only to code that would omit visible effects.

    These are `Module.__call__`, for hooks that run even after an error, and transforms of
    torch.func, for the function's name.
    """
    return ConstantTracker(t.frame is None or t.frame.code.raw not in _UNAWARE)


_TRANSFORMS: Any = torch.func  # its stubs are incomplete
_UNAWARE = frozenset(
    function.__code__
    for function in (
        Module._call_impl,
        torch.vmap,
        _TRANSFORMS.grad,
        _TRANSFORMS.grad_and_value,
    )
)


# -- levels of torch.func --------------------------------------------------------------------------
def _of_levels(function: Any, read: Callable[[int], Any]) -> None:
    """Register a query about the interpreter stack, answered from the depth of the region's own
    transforms.

    None is entered while tracing, and a region called inside one runs eagerly. MISSING: only a real
    level has a result. `linearize` calls its function at two depths.
    """

    @handlers.handles(function)
    def run(t: Space, args: Args, kwargs: Kwargs) -> Result:
        names = t.state(Transforms).names
        value = MISSING if "linearize" in names else read(len(names))
        if value is MISSING:
            raise t.unsupported(
                "transform", f"{function.__name__}() under {', '.join(names) or 'no transform'}"
            )
        return ConstantTracker(value)


_LEVELS: Any = torch._C._functorch
_of_levels(torch._C._are_functorch_transforms_active, bool)
_of_levels(_LEVELS.get_dynamic_layer_stack_depth, int)
_of_levels(_LEVELS.maybe_current_level, lambda depth: depth or None)
_of_levels(_LEVELS.current_level, lambda depth: depth or MISSING)
for _function in (_LEVELS.peek_interpreter_stack, _LEVELS.get_interpreter_stack):
    _of_levels(_function, lambda depth: MISSING if depth else None)
for _function in (
    _LEVELS.is_batchedtensor,
    _LEVELS.is_gradtrackingtensor,
    _LEVELS.is_functorch_wrapped_tensor,
):
    _of_levels(_function, lambda depth: MISSING if depth else False)
for _function in (_LEVELS.maybe_get_level, _LEVELS.maybe_get_bdim):
    _of_levels(_function, lambda depth: MISSING if depth else -1)


@handlers.handles(BY_NAME)
def call_by_name(t: Space, args: Args, kwargs: Kwargs) -> Result:
    """Call functions found by name, so that their module need not be imported; MISSING for all
    others.

    `torch.onnx.is_in_onnx_export`; `is_compiling` of `torch._dynamo`; `mark_static` of a size,
    which makes it a constant from here on; and what functions of torch test of sizes, which
    natively are ints, except the ragged one of a jagged tensor.
    """
    vt, *args = args
    function: Any = vt.real
    module = module_of(function)
    if function.__name__ == "is_compiling" and module.startswith("torch._dynamo"):
        return is_compiling(t, [], {})

    if module == "torch.fx.experimental.symbolic_shapes" and len(args) == 1:
        return _test_of_sizes(function.__name__, args[0])

    if (
        function.__name__ == "mark_static"
        and module == "torch._dynamo.decorators"
        and len(args) == 2
    ):
        # ShapeEnv guards the value of a symbol that is read
        int(args[0].example.size(args[1].constant()))
        return ConstantTracker(None)
    is_export_query = function.__name__ == "is_in_onnx_export" and module.startswith("torch.onnx")
    return ConstantTracker(False) if is_export_query else MISSING


def _test_of_sizes(name: str, vt: Any) -> Result:
    """Return what a test of symbols gives for a number, or for a tensor's sizes: natively they are
    none."""
    is_number = is_a(vt, ConstantTracker | NumberTracker)
    if name == "is_nested_int" and is_number:
        return ConstantTracker(is_a(vt, NumberTracker) and vt.example.node.is_nested_int())
    if name == "has_free_unbacked_symbols" and (is_a(vt, TensorTracker) or vt.cls is int):
        return ConstantTracker(False)
    return vt if name in ("guard_or_false", "guard_or_true") and vt.cls is bool else MISSING
