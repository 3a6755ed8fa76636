"""Opcodes of `match` statements."""

from stator_bytecode._handlers._asking import asking
from stator_bytecode._machine._domain import Domain, Result
from stator_bytecode._machine._frame import Frame


def match_class(domain: Domain, frame: Frame, count: int) -> Result:
    subject, cls, names = frame.popn(3)
    return domain.match_class(subject, cls, count, names)


match_ops = asking(
    {
        "MATCH_CLASS": match_class,
        "MATCH_MAPPING": lambda domain, frame, _: domain.match_mapping(frame.stack[-1]),
        "MATCH_SEQUENCE": lambda domain, frame, _: domain.match_sequence(frame.stack[-1]),
        "MATCH_KEYS": lambda domain, frame, _: domain.match_keys(*frame.stack[-2:]),
        "GET_LEN": lambda domain, frame, _: domain.length(frame.stack[-1]),
    }
)
