"""`format`, `str`, `repr` and `ascii`, and what `object` defines for these."""

import types

from stator_bytecode import Result

from stator_variables._objects._lookup import guarded_lookup
from stator_variables._objects._method_table import MethodTable, folded
from stator_variables._objects._program_error import complain
from stator_variables._protocols import _attributes
from stator_variables._protocols._formatting import convert, format_value
from stator_variables._space import Space
from stator_variables._tracker import VariableTracker

methods = MethodTable("formatting")


@methods.handles(format)
def handle_format(t: Space, value: VariableTracker, spec: VariableTracker | None = None) -> Result:
    if spec is not None and not isinstance(spec.constant(), str):
        raise t.unsupported("bad-arguments", "a call of format() that it does not accept")
    return format_value(t, value, "", spec)


@methods.handles(str, takes=(0, 3), named=("object", "encoding", "errors"))
def handle_str(t: Space, *args: VariableTracker, **kwargs: VariableTracker) -> Result:
    return (
        convert(t, args[0], "s")
        if len(args) == 1 and not kwargs
        else folded(t, str, list(args), kwargs)
    )


@methods.handles_each({repr: "r", ascii: "a"})
def handle_repr(t: Space, vt: VariableTracker, of: str) -> Result:
    return convert(t, vt, of)


@methods.handles(object.__repr__)
def object_repr(t: Space, vt: VariableTracker) -> Result:
    raise t.unsupported(
        "identity-number", f"repr() of a {vt.cls.__name__}, which shows where it is in memory"
    )


@methods.handles(object.__str__)
def object_str(t: Space, vt: VariableTracker) -> Result:
    raw = guarded_lookup(t, vt.cls, "__repr__")
    if isinstance(raw, types.WrapperDescriptorType) or _attributes.may_refuse(t, raw):
        return convert(t, vt, "r")
    return t.call(t.special(vt, "__repr__"), [])  # the caller checks the result


@methods.handles(object.__format__)
def object_format(t: Space, vt: VariableTracker, format_spec: VariableTracker) -> Result:
    spec = format_spec.constant()
    if spec == "":
        return convert(t, vt, "s")
    if isinstance(spec, str):
        complain(t, TypeError, "unsupported format string passed to ", vt.cls, ".__format__")
    raise t.unsupported("bad-arguments", "a format that is no string")
