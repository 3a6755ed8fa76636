"""Opcodes of operators, items, branches, iteration and `match` statements; those that build
containers and strings."""

from stator_bytecode._codec._instruction import Instruction
from stator_bytecode._codec._rules import CONVERTERS
from stator_bytecode._handler_table import HandlerTable
from stator_bytecode._handlers._domain_handler import DomainCall, domain_handlers
from stator_bytecode._machine._domain import Domain, Result
from stator_bytecode._machine._frame import Frame
from stator_bytecode._machine._machine import Machine, OpcodeHandler


def unary_op(domain: Domain, frame: Frame, symbol: str) -> Result:
    value = frame.stack.pop()
    return domain.truth(value) if symbol == "not" else domain.unary(symbol, value)


def store_subscr(domain: Domain, frame: Frame, _: None) -> Result:
    new, container, key = frame.popn(3)
    return domain.set_item(container, key, new)


def binary_slice(domain: Domain, frame: Frame, _: None) -> Result:
    container, *bounds = frame.popn(3)
    return domain.get_item(container, domain.build_slice(bounds))


def store_slice(domain: Domain, frame: Frame, _: None) -> Result:
    new, container, *bounds = frame.popn(4)
    return domain.set_item(container, domain.build_slice(bounds), new)


def match_class(domain: Domain, frame: Frame, count: int) -> Result:
    subject, cls, names = frame.popn(3)
    return domain.match_class(subject, cls, count, names)


_DOMAIN_CALLS: dict[str, DomainCall] = {
    "UNARY_OP": unary_op,
    "BINARY_OP": lambda domain, frame, symbol: domain.binary(symbol, *frame.popn(2)),
    "COMPARE_OP": lambda domain, frame, arg: domain.compare(arg[0], *frame.popn(2)),
    "IS_OP": lambda domain, frame, invert: domain.identical(
        frame.stack.pop(-2), frame.stack.pop(), invert
    ),
    "CONTAINS_OP": lambda domain, frame, invert: domain.contains(
        frame.stack.pop(), frame.stack.pop(), invert
    ),
    "BINARY_SUBSCR": lambda domain, frame, _: domain.get_item(*frame.popn(2)),
    "STORE_SUBSCR": store_subscr,
    "DELETE_SUBSCR": lambda domain, frame, _: domain.delete_item(*frame.popn(2)),
    "BINARY_SLICE": binary_slice,
    "STORE_SLICE": store_slice,
    **dict.fromkeys(
        ("TO_BOOL", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"),
        lambda domain, frame, _: domain.truth(frame.stack.pop()),
    ),
    **dict.fromkeys(
        ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"),
        lambda domain, frame, _: domain.truth(frame.stack[-1]),
    ),
    "GET_ITER": lambda domain, frame, _: domain.get_iterator(frame.stack.pop()),
    "FOR_ITER": lambda domain, frame, slots: domain.next_value(frame.stack[-slots]),
    "MATCH_CLASS": match_class,
    "MATCH_MAPPING": lambda domain, frame, _: domain.match_mapping(frame.stack[-1]),
    "MATCH_SEQUENCE": lambda domain, frame, _: domain.match_sequence(frame.stack[-1]),
    "MATCH_KEYS": lambda domain, frame, _: domain.match_keys(*frame.stack[-2:]),
    "GET_LEN": lambda domain, frame, _: domain.length(frame.stack[-1]),
}
operator_ops: HandlerTable[str, OpcodeHandler] = domain_handlers(_DOMAIN_CALLS)


@operator_ops.handles_each({"POP_JUMP_IF_NONE": True, "POP_JUMP_IF_NOT_NONE": False})
def pop_jump_if_none(machine: Machine, frame: Frame, instr: Instruction, of: bool) -> int | None:
    return instr.target if machine.domain.is_none(frame.stack.pop()) is of else None


# -- building --------------------------------------------------------------------------------------
# Opcodes that build containers and strings, add to them, and take them apart.


def build_map(domain: Domain, frame: Frame, count: int) -> Result:
    items = frame.popn(2 * count)
    return domain.build_map(items[::2], items[1::2])


def dict_merge(domain: Domain, frame: Frame, depth: int) -> Result:
    """`[NULL, fn, args, dict]` or `[fn, NULL, args, dict]`: the error names the function."""
    mapping = frame.stack.pop()
    function = frame.stack[-(depth + (2 if frame.code.null_first else 3))]
    return domain.dict_merge(frame.stack[-depth], mapping, function)


def format_value(domain: Domain, frame: Frame, arg: tuple[str, bool]) -> Result:
    conversion, has_spec = arg
    spec = frame.stack.pop() if has_spec else None
    return domain.format_value(frame.stack.pop(), conversion, spec)


def convert_value(domain: Domain, frame: Frame, conversion: str) -> Result:
    return domain.call(domain.constant(CONVERTERS[conversion]), [frame.stack.pop()], {})


def build_interpolation(domain: Domain, frame: Frame, arg: tuple[str, bool]) -> Result:
    conversion, has_spec = arg
    spec = frame.stack.pop() if has_spec else None
    value, text = frame.popn(2)
    return domain.build_interpolation(value, text, conversion, spec)


building_ops = domain_handlers(
    {
        "BUILD_LIST": lambda domain, frame, count: domain.build_list(frame.popn(count)),
        "BUILD_SET": lambda domain, frame, count: domain.build_set(frame.popn(count)),
        "BUILD_STRING": lambda domain, frame, count: domain.build_string(frame.popn(count)),
        "BUILD_SLICE": lambda domain, frame, count: domain.build_slice(frame.popn(count)),
        "BUILD_MAP": build_map,
        "BUILD_CONST_KEY_MAP": lambda domain, frame, count: domain.build_const_key_map(
            frame.stack.pop(), frame.popn(count)
        ),
        # the container lies `depth` deep under what is added
        "LIST_APPEND": lambda domain, frame, depth: domain.list_append(
            frame.stack[-depth - 1], frame.stack.pop()
        ),
        "SET_ADD": lambda domain, frame, depth: domain.set_add(
            frame.stack[-depth - 1], frame.stack.pop()
        ),
        "MAP_ADD": lambda domain, frame, depth: domain.map_add(
            frame.stack[-depth - 2], *frame.popn(2)
        ),
        "LIST_EXTEND": lambda domain, frame, depth: domain.list_extend(
            frame.stack[-depth - 1], frame.stack.pop()
        ),
        "SET_UPDATE": lambda domain, frame, depth: domain.set_update(
            frame.stack[-depth - 1], frame.stack.pop()
        ),
        "DICT_UPDATE": lambda domain, frame, depth: domain.dict_update(
            frame.stack[-depth - 1], frame.stack.pop()
        ),
        "DICT_MERGE": dict_merge,
        "UNPACK_SEQUENCE": lambda domain, frame, count: domain.unpack(frame.stack.pop(), count),
        "UNPACK_EX": lambda domain, frame, arg: domain.unpack_ex(frame.stack.pop(), *arg),
        "FORMAT_VALUE": format_value,
        "CONVERT_VALUE": convert_value,
        "BUILD_INTERPOLATION": build_interpolation,
        "BUILD_TEMPLATE": lambda domain, frame, _: domain.build_template(*frame.popn(2)),
    }
)


@building_ops.handles("BUILD_TUPLE")
def build_tuple(machine: Machine, frame: Frame, instr: Instruction) -> None:
    stack, count = frame.stack, instr.arg
    built = machine.domain.build_tuple(stack[len(stack) - count :])
    del stack[len(stack) - count :]
    stack.append(built)


@building_ops.handles("LIST_TO_TUPLE")
def list_to_tuple(machine: Machine, frame: Frame, instr: Instruction) -> None:
    frame.stack[-1] = machine.domain.list_to_tuple(frame.stack[-1])
