"""Exceptions of foreign code while an operator runs on fake tensors: each is a break for the
tracer.

An error that the operator itself has with these inputs (a shape mismatch, a wrong dtype) is the
program's own: the break runs the operator natively, and it raises there. The table below names the
others: limits of fake tensors and of symbolic shapes. Only exceptions of foreign code become
breaks, so a fault of stator stays one.
"""

import re
from typing import Any

from attrs import frozen
from stator_bytecode.errors import InvalidUse, StatorError, Unsupported
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

CAPTURE_SCALARS = (
    'pass options={"capture_data": True}, or move the data-dependent part out of the compiled '
    "function"
)


@frozen
class Limit:
    """One foreign error: the slug of our reason for it, and what to try."""

    reason: str
    hint: str = ""


LIMITS: dict[str, Limit] = {
    "DataDependentOutputException": Limit("data-dependent-output", CAPTURE_SCALARS),
    "DynamicOutputShapeException": Limit("data-dependent-shape", CAPTURE_SCALARS),
    "GuardOnDataDependentSymNode": Limit(
        "data-dependent-guard", "state the bound with torch._check"
    ),
    "PendingUnbackedSymbolNotFound": Limit(
        "unbacked-symbol-lost", "return the value that the symbol comes from"
    ),
    "UnsupportedFakeTensorException": Limit("no-fake-tensor"),
    "UnsupportedOperatorException": Limit(
        "no-fake-kernel", "register a fake implementation of the operator"
    ),
    "UnsupportedMutationAliasingException": Limit(
        "mutation-or-aliasing-in-body", "clone the value first"
    ),
    "UnsupportedAliasMutationException": Limit(
        "mutation-or-aliasing-in-body", "clone the value first"
    ),
    "UncapturedHigherOrderOpError": Limit("higher-order-operator"),
    "CondOpArgsMismatchError": Limit("higher-order-operator"),
    "MetadataMismatchError": Limit(
        "wrong-fake-kernel", "correct the fake implementation of the operator"
    ),
    "OperatorIssue": Limit("no-fake-kernel"),
    "ValueRangeError": Limit("shape-out-of-range"),
}
"""Limits by the name of the class, anywhere among its bases: half of these classes are in modules
that must not be imported here."""

TEXTS: dict[str, Limit] = {
    r"no fake impl registered": LIMITS["UnsupportedOperatorException"],
    r"Cannot access data pointer|data is not allocated yet|data_ptr\(\)": Limit("data-pointer"),
    r"invoking .* with non-Fake Tensor inputs|Please convert all Tensors to FakeTensors": Limit(
        "real-tensor"
    ),
    r"numpy\(\)|\.tolist\(\) is not supported for tensor subclasses|"
    r"storage is not accessible": Limit("data-access"),
}
"""Limits by the text of errors that torch raises as a plain RuntimeError."""


def limit_of(error: BaseException) -> Limit | None:
    """The entry of the tables for this error; None for an error of the operator itself."""
    for cls in type(error).__mro__:
        if str(cls.__module__).partition(".")[0] == "torch" and cls.__name__ in LIMITS:
            return LIMITS[cls.__name__]
    text = str(error) if type(error) in (RuntimeError, AssertionError, NotImplementedError) else ""
    return next((limit for pattern, limit in TEXTS.items() if re.search(pattern, text)), None)


MARKED = "mark the dimension with `maybe_mark_dynamic`, or do not mark it"
_OPERATOR_ERROR = Limit("operator-error", "see the error that it raises")


@frozen
class Foreign:
    """Around foreign code, and around nothing else: what it raises leaves as a break.

    `what` was being done: an operator or the name of an input. A class, since a generator costs
    more than the rest.
    """

    what: Any

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, ConstraintViolationError):
            raise violated(error, f"{name_of(self.what)}: ") from None
        if isinstance(error, Exception) and not isinstance(error, StatorError):
            raise broken(limit_of(error) or _OPERATOR_ERROR, error, name_of(self.what)) from error


def violated(error: ConstraintViolationError, what: str = "") -> InvalidUse:
    """Return the error of ours in place of torch's, whose text it has without the advice for other
    ways of marking."""
    text = _ADVICE.sub("", str(error))
    lines = (line for line in text.splitlines() if line.strip())
    return InvalidUse(what + "\n".join(lines), MARKED)


_ADVICE = re.compile(r" For more information, run with TORCH_LOGS=\S+| If you're using [^\n]*")


def name_of(what: object) -> str:
    """An operator, method or input, for people."""
    if isinstance(what, str):
        return what
    name = str(getattr(what, "__qualname__", what))
    return name.replace("_VariableFunctionsClass.", "torch.")


def broken(limit: Limit, error: Exception, what: str) -> Unsupported:
    first = next(iter(str(error).strip().splitlines()), "")
    return Unsupported(
        limit.reason, f"{what}: {type(error).__name__}: {first}".rstrip(": "), limit.hint
    )
