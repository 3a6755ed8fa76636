"""Opcodes of names that live in mappings: globals, class bodies, imports, and of attributes."""

from stator_bytecode._handlers._domain_handler import domain_handlers
from stator_bytecode._machine._domain import Domain, Result
from stator_bytecode._machine._frame import Frame


def load_super(domain: Domain, frame: Frame, arg: tuple[str, bool, bool]) -> Result:
    super_fn, cls, receiver = frame.popn(3)
    return domain.load_super(frame, super_fn, cls, receiver, arg[0])


name_ops = domain_handlers(
    {
        "LOAD_GLOBAL": lambda domain, frame, arg: domain.load_global(frame, arg[0]),
        "STORE_GLOBAL": lambda domain, frame, name: domain.store_global(
            frame, name, frame.stack.pop()
        ),
        "DELETE_GLOBAL": lambda domain, frame, name: domain.delete_global(frame, name),
        "LOAD_NAME": lambda domain, frame, name: domain.load_name(frame, name),
        "STORE_NAME": lambda domain, frame, name: domain.store_name(frame, name, frame.stack.pop()),
        "DELETE_NAME": lambda domain, frame, name: domain.delete_name(frame, name),
        "LOAD_LOCALS": lambda domain, frame, _: domain.load_locals(frame),
        "LOAD_CLASSDEREF": lambda domain, frame, slot: domain.load_from_mapping(
            frame.names, frame.code.slots[slot]
        ),
        "LOAD_FROM_DICT_OR_DEREF": lambda domain, frame, slot: domain.load_from_mapping(
            frame.stack.pop(), frame.code.slots[slot]
        ),
        "LOAD_FROM_DICT_OR_GLOBALS": lambda domain, frame, name: domain.load_from_mapping(
            frame.stack.pop(), name
        ),
        "SETUP_ANNOTATIONS": lambda domain, frame, _: domain.load_from_mapping(
            frame.names, "__annotations__"
        ),
        # [level, names] are on the stack
        "IMPORT_NAME": lambda domain, frame, name: domain.import_name(
            frame, name, *frame.popn(2)[::-1]
        ),
        "IMPORT_FROM": lambda domain, frame, name: domain.import_from(frame.stack[-1], name),
        "IMPORT_STAR": lambda domain, frame, _: domain.import_star(frame, frame.stack.pop()),
        "LOAD_ATTR": lambda domain, frame, name: domain.get_attribute(frame.stack.pop(), name),
        "LOAD_METHOD": lambda domain, frame, name: domain.load_method(frame.stack.pop(), name),
        "LOAD_SUPER_ATTR": load_super,
        # [new, object]
        "STORE_ATTR": lambda domain, frame, name: domain.set_attribute(
            frame.stack.pop(), name, frame.stack.pop()
        ),
        "DELETE_ATTR": lambda domain, frame, name: domain.delete_attribute(frame.stack.pop(), name),
    }
)
