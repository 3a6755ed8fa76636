"""The object space of all packages: the operations that `Space` declares, joined from the modules
that have them."""

from collections.abc import Callable
from typing import Any

import attrs
from stator_bytecode import Result

from stator_variables import _call_rules, _registry
from stator_variables._handler_keys import ARRAY_OPERATOR, WITH_GENERATOR
from stator_variables._objects import (
    _dict_entries,
    _functions,
    _hashing,
    _number,
    _number_of_numpy,
    _substitutes,
    _wrap,
)
from stator_variables._protocols import (
    _attributes,
    _calls,
    _consumption,
    _containers,
    _folding,
    _formatting,
    _iteration,
    _operators,
    _super_attributes,
)
from stator_variables._space import Space
from stator_variables._tensors import (
    _tensor_attributes,
    _tensor_operators,
    _torch_calls,
)
from stator_variables._tracker import Args, Kwargs, VariableTracker


@attrs.define(eq=False)
class StandardSpace(Space):
    """State and operations of one trace."""

    wrap = _wrap.wrap
    build = _registry.build
    class_of = _attributes.class_of
    truth = _operators.truth
    key_of = _hashing.key_of

    call_function = _calls.call_function
    call_builtin = _calls.call_builtin
    construct = _calls.construct
    read_method = _functions.of_method
    read_recipe = _substitutes.field_of
    read_tensor = _tensor_attributes.read
    iterate_tensor = _iteration.iterate_tensor
    iterate_array = _iteration.iterate_array
    length_of_tensor = _containers.length_of_tensor
    record_item = _torch_calls.record_item
    specialise = _number.specialised
    number_of_scalar = _number_of_numpy.number_of
    number_of_array = _torch_calls.number_of_array
    bound_of_slice = _torch_calls.bound_of_slice
    get_class_item = _operators.get_class_item
    operate_in_graph = _tensor_operators.operate
    operate_on_constants = _folding.operate

    call = _calls.call
    call_by_rule = _call_rules.call_by_rule
    call_slot = _calls.call_slot
    fold = _folding.fold

    get_attribute = _attributes.get_attribute
    generic_get = _attributes.generic_get
    super_attribute = _super_attributes.super_attribute
    special = _attributes.special
    bind = _attributes.bind

    binary = _operators.binary
    compare = _operators.compare
    equal = _operators.equal
    identical = _operators.identical
    contains = _operators.contains
    get_item = _operators.get_item
    set_item = _containers.set_item
    index_of = _containers.index_of
    convert = _formatting.convert
    format_value = _formatting.format_value

    get_iterator = _iteration.get_iterator
    next_value = _iteration.next_value
    drain = _consumption.drain
    for_each = _consumption.for_each

    lookup = _dict_entries.lookup
    items = _dict_entries.items

    def operate_on_arrays(self, function: Callable[..., Any], *operands: VariableTracker) -> Result:
        handler = self.handlers.get(ARRAY_OPERATOR)
        if handler is None:
            raise self.unsupported("numpy", ARRAY_OPERATOR)
        return handler(self, [function, *operands], {})

    def call_with_generator(self, target: object, args: Args, kwargs: Kwargs) -> Result:
        handler = self.handlers.get(WITH_GENERATOR)
        if handler is None:
            raise self.unsupported("random-stream", WITH_GENERATOR)
        return handler(self, [target, *args], kwargs)
