"""The whole machine in one file: how stator captures, guards, breaks and continues, with nothing
left to imagine.

One file on purpose, longer than files here should be: nothing is out of sight. Read it beside
``architecture.md``; the sections have its numbers and names. Run it (``python tiny_stator.py``) and
it shows the entries it wrote for a function that calls another one, prints, and branches on data.

What is small here, and why promise one ("the same answer as Python") holds all the same:

- It reads the bytecode of CPython 3.11, in a few dozen instructions. A function with others runs
  plainly.
- It has no journal of side effects. An instruction that writes to an object is a break: Python
  itself runs it.
- It is a break, too, when a traced operation raises, so that the exception is real. ``try`` and
  ``with`` run plainly.
- Python numbers are guarded by value. A real stack would make the one that changes symbolic.
- What only the data of a tensor can raise (an index out of range) is raised by the graph, from
  another line. The packages would run the original function then.
"""

from __future__ import annotations

import dis
import inspect
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import torch
import torch.fx

if sys.version_info[:2] != (3, 11):
    raise ImportError(
        "tiny_stator reads the bytecode of CPython 3.11 only; the packages read 3.11 to 3.15"
    )


class Unsupported(Exception):
    """This instruction cannot be captured; the program is fine."""


# ---- 1. The neutral instruction stream -----------------------------------------------------------


@attrs.frozen
class Instruction:
    """One instruction without the accidents of a Python version: no caches, jumps point at
    instructions."""

    op: str
    arg: Any
    target: int
    line: int


# What 3.11 calls it -> what it is; ``...`` stands for its argument. A method call becomes a plain
# one of an attribute.
NEUTRAL: dict[str, tuple[tuple[str, Any], ...]] = {
    "LOAD_METHOD": (("LOAD_ATTR", ...), ("PUSH_NULL", None), ("SWAP", 2)),
    "POP_JUMP_FORWARD_IF_TRUE": (("POP_JUMP_IF", True),),
    "POP_JUMP_FORWARD_IF_FALSE": (("POP_JUMP_IF", False),),
    "POP_JUMP_BACKWARD_IF_TRUE": (("POP_JUMP_IF", True),),
    "POP_JUMP_BACKWARD_IF_FALSE": (("POP_JUMP_IF", False),),
    "POP_JUMP_FORWARD_IF_NONE": (("LOAD_CONST", None), ("IS_OP", 0), ("POP_JUMP_IF", True)),
    "POP_JUMP_FORWARD_IF_NOT_NONE": (("LOAD_CONST", None), ("IS_OP", 1), ("POP_JUMP_IF", True)),
    "JUMP_FORWARD": (("JUMP", None),),
    "JUMP_BACKWARD": (("JUMP", None),),
    "BUILD_LIST": (("BUILD_LIST", ...),),
    "BUILD_TUPLE": (("BUILD_TUPLE", ...),),
}
SILENT = {"RESUME", "PRECALL", "CACHE", "NOP", "EXTENDED_ARG"}
SAME = {
    "LOAD_FAST",
    "STORE_FAST",
    "LOAD_CONST",
    "LOAD_ATTR",
    "POP_TOP",
    "PUSH_NULL",
    "SWAP",
    "COPY",
    "BINARY_SUBSCR",
}
SAME |= {
    "STORE_SUBSCR",
    "STORE_ATTR",
    "COMPARE_OP",
    "IS_OP",
    "CALL",
    "RETURN_VALUE",
    "UNARY_NEGATIVE",
}


def decode(code: types.CodeType) -> tuple[Instruction, ...] | None:
    """The function's instructions, or None when one of them is not known here."""
    if (
        code.co_exceptiontable
        or code.co_freevars
        or code.co_cellvars
        or code.co_flags & inspect.CO_GENERATOR
    ):
        return None
    starts: dict[int, int] = {}
    found: list[tuple[str, Any, dis.Instruction]] = []
    for item in dis.get_instructions(code):
        starts[item.offset] = len(found)
        parts = list(_neutral(item))
        if not parts and item.opname not in SILENT:
            return None
        found += [(op, arg, item) for op, arg in parts]
    return tuple(
        Instruction(op, arg, starts[item.argval] if "JUMP" in op else -1, _line(item))
        for op, arg, item in found
    )


def _line(item: dis.Instruction) -> int:
    return (item.positions and item.positions.lineno) or 0


def _neutral(item: dis.Instruction) -> Iterator[tuple[str, Any]]:
    # the lowest bit of its argument asks for a NULL below the value
    if item.opname == "LOAD_GLOBAL":
        yield from (("PUSH_NULL", None),) if item.arg and item.arg & 1 else ()
        yield "LOAD_GLOBAL", item.argval
    elif item.opname == "BINARY_OP":
        yield "BINARY_OP", item.argrepr  # "+" or "+=", which is another thing to a tensor
    elif item.opname in SAME:
        yield item.opname, item.argval
    for op, arg in NEUTRAL.get(item.opname, ()):
        yield op, item.argval if arg is ... else arg


# ---- 2. The Machine, its frames, its Domain ------------------------------------------------------

NULL: Any = type("NULL", (), {"__repr__": lambda self: "NULL"})()


@attrs.define(eq=False)
class Frame:
    """One activation of a function. Frames are data on an explicit stack: the Machine never
    recurses."""

    function: Any  # a types.FunctionType
    pc: int
    slots: dict[str, Any]
    stack: list[Any]

    @property
    def instruction(self) -> Instruction:
        return decode_cached(self.function)[self.pc]

    def pop(self, count: int) -> list[Any]:
        cut = len(self.stack) - count
        taken, self.stack[cut:] = self.stack[cut:], []
        return taken


@attrs.frozen
class Invoke:
    """What an operation gives back instead of a value: run this frame, its result is the value. A
    tail call."""

    frame: Frame


@attrs.frozen
class Returned:
    value: Any


@attrs.frozen
class Broke:
    """The instruction that ``frames`` stand before cannot be captured. Nothing of it has
    happened."""

    frames: list[Frame]
    reason: str


DECODED: dict[types.CodeType, tuple[Instruction, ...] | None] = {}


def decode_cached(function: Any) -> tuple[Instruction, ...]:
    code = function.__code__
    if code not in DECODED:
        DECODED[code] = decode(code)
    found = DECODED[code]
    assert found is not None, "only decoded functions get a frame"
    return found


def frame_for(function: Any, args: tuple[Any, ...]) -> Frame | None:
    """A frame at the start of ``function``; None for what runs plainly (defaults, stars, unknown
    instructions)."""
    code = function.__code__
    plain = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_kwonlyargcount
    if plain or code.co_argcount != len(args) or DECODED.setdefault(code, decode(code)) is None:
        return None
    return Frame(function, 0, dict(zip(code.co_varnames, args, strict=False)), [])


class Machine:
    """Knows CPython's stack and jumps, and nothing about values: all meaning is asked of the
    domain."""

    def __init__(self, domain: Concrete | Symbolic) -> None:
        self.domain = domain

    def run(self, frames: list[Frame], *, steps: int = -1) -> Returned | Broke:
        """Run until the outermost frame returns, an instruction cannot be captured, or ``steps``
        are done."""
        while steps:
            steps -= 1
            frame, mark = frames[-1], self.domain.mark()
            before = (frame.pc, list(frame.stack))
            try:
                outcome = self.step(frame)
            except Unsupported as reason:
                # Rollback never resumes: it chooses the state that the break is written from.
                self.domain.rollback(mark)
                frame.pc, frame.stack = before
                return Broke(
                    frames, f"{reason} (line {frame.instruction.line} of {frame.function.__name__})"
                )
            if isinstance(outcome, Invoke):
                frames.append(outcome.frame)
            elif isinstance(outcome, Returned):
                frames.pop()
                if not frames:
                    return outcome
                frames[-1].stack.append(outcome.value)
        return Broke(frames, "done")

    def step(self, frame: Frame) -> Invoke | Returned | None:
        """One instruction. The frame's pc already stands after it when a callee starts: that is how
        it is parked."""
        instr, ask, stack = frame.instruction, self.domain, frame.stack
        frame.pc += 1
        match instr.op:
            case "LOAD_FAST":
                stack.append(
                    frame.slots[instr.arg] if instr.arg in frame.slots else ask.unbound(instr.arg)
                )
            case "STORE_FAST":
                frame.slots[instr.arg] = stack.pop()
            case "LOAD_CONST":
                stack.append(ask.constant(instr.arg))
            case "LOAD_GLOBAL":
                stack.append(ask.global_(frame.function, instr.arg))
            case "PUSH_NULL":
                stack.append(NULL)
            case "POP_TOP":
                stack.pop()
            case "SWAP":
                stack[-1], stack[-instr.arg] = stack[-instr.arg], stack[-1]
            case "COPY":
                stack.append(stack[-instr.arg])
            case "JUMP":
                frame.pc = instr.target
            case "POP_JUMP_IF":
                if ask.truth(stack.pop()) is instr.arg:
                    frame.pc = instr.target
            case "RETURN_VALUE":
                return Returned(stack.pop())
            case "CALL":
                function, *args = frame.pop(instr.arg + 2)[1:]
                result = ask.call(function, tuple(args))
                if isinstance(result, Invoke):
                    return result
                stack.append(result)
            case "BUILD_TUPLE" | "BUILD_LIST":
                stack.append(ask.build(instr.op, frame.pop(instr.arg)))
            case "STORE_ATTR" | "STORE_SUBSCR":
                ask.write(instr, frame.pop(2 if instr.op == "STORE_ATTR" else 3))
            case _:
                stack.append(ask.operate(instr, frame.pop(OPERANDS[instr.op])))
        return None


OPERANDS = {
    "LOAD_ATTR": 1,
    "UNARY_NEGATIVE": 1,
    "BINARY_OP": 2,
    "BINARY_SUBSCR": 2,
    "COMPARE_OP": 2,
    "IS_OP": 2,
}
NAMES = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "@": "matmul",
}
NAMES |= {"<<": "lshift", ">>": "rshift", "&": "and_", "|": "or_", "^": "xor"}
BINARY: dict[str, Callable[..., Any]] = {
    sign: getattr(operator, name) for sign, name in NAMES.items()
}
BINARY |= {f"{sign}=": getattr(operator, "i" + name.rstrip("_")) for sign, name in NAMES.items()}
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


def operation(instr: Instruction) -> Callable[..., Any]:
    """What an instruction computes from its operands, as Python has it."""
    match instr.op:
        case "LOAD_ATTR":
            return lambda value: getattr(value, instr.arg)
        case "BINARY_OP":
            return BINARY[instr.arg]
        case "COMPARE_OP":
            return COMPARE[instr.arg]
        case "IS_OP":
            return operator.is_not if instr.arg else operator.is_
        case "UNARY_NEGATIVE":
            return operator.neg
    return operator.getitem


class Concrete:
    """The domain whose values are the objects themselves: with it the Machine is a plain Python
    interpreter."""

    def mark(self) -> int:
        return 0

    def rollback(self, mark: int) -> None:
        raise AssertionError("everything is supported here")

    def constant(self, value: Any) -> Any:
        return value

    def unbound(self, name: str) -> Any:
        raise UnboundLocalError(
            f"cannot access local variable '{name}' where it is not associated with a value"
        )

    def global_(self, function: Any, name: str) -> Any:
        for names in (function.__globals__, function.__builtins__):
            if name in names:
                return names[name]
        raise NameError(f"name '{name}' is not defined")

    def truth(self, value: Any) -> bool:
        return bool(value)

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        return function(*args)

    def build(self, kind: str, parts: list[Any]) -> Any:
        return tuple(parts) if kind == "BUILD_TUPLE" else parts

    def write(self, instr: Instruction, operands: list[Any]) -> None:
        if instr.op == "STORE_ATTR":
            value, target = operands
            setattr(target, instr.arg, value)
        else:
            value, target, key = operands
            target[key] = value

    def operate(self, instr: Instruction, operands: list[Any]) -> Any:
        return operation(instr)(*operands)


# ---- 4. The symbolic domain: what values mean while tracing --------------------------------------


@attrs.frozen(eq=False)
class Given:
    """A real object that can be found again on the next call: ``source`` is a Python expression for
    it."""

    source: str
    real: Any


@attrs.frozen(eq=False)
class Known:
    """A constant of this entry: it came from the code, or was computed from what is guarded."""

    value: Any


@attrs.frozen(eq=False)
class Tensor:
    """The result of a graph node. ``example`` has its shape and dtype and no data; inputs also have
    a source."""

    node: torch.fx.Node
    example: torch.Tensor
    source: str | None = None


@attrs.frozen(eq=False)
class Method:
    """``tensor.name``, about to be called."""

    tensor: Tensor
    name: str


@attrs.frozen(eq=False)
class Parts:
    """A tuple made while tracing."""

    parts: list[Any]


LITERALS = (int, float, bool, str, type(None))
PURE = {len, abs, min, max, int, float, bool}


@attrs.define(eq=False)
class Symbolic:
    """Trackers in, trackers out. Reading a real object installs the guard that makes the reading
    valid next time."""

    graph: torch.fx.Graph = attrs.field(factory=torch.fx.Graph)
    inputs: dict[str, Tensor] = attrs.field(factory=dict)
    guards: dict[str, None] = attrs.field(factory=dict)  # an ordered set of Python expressions
    captured: dict[str, Any] = attrs.field(factory=dict)  # the objects that generated code names

    def computed(self) -> list[torch.fx.Node]:
        return [node for node in self.graph.nodes if node.op != "placeholder"]

    def mark(self) -> int:
        return len(self.computed())

    def rollback(self, mark: int) -> None:
        """Forget what the failed instruction computed. Inputs stay: their guards hold, and unused
        ones cost nothing."""
        for node in reversed(self.computed()[mark:]):
            self.graph.erase_node(node)

    def name(self, value: Any) -> str:
        name = next(
            (name for name, other in self.captured.items() if other is value),
            f"K{len(self.captured)}",
        )
        self.captured[name] = value
        return name

    def read(self, value: Any) -> Any:
        """What an operation works with: a ``Tensor``, ``Method``, ``Parts``, or a plain object, now
        guarded."""
        if isinstance(value, Known):
            return value.value
        if not isinstance(value, Given):
            return value
        if isinstance(value.real, torch.Tensor):
            return self.input(value)
        self.guards[self.guard(value.source, value.real)] = None
        return value.real

    def guard(self, source: str, real: Any) -> str:
        """An expression that is true as long as ``real`` may be taken for what ``source`` gives."""
        if isinstance(real, types.FunctionType):
            return (
                f"{source} is {self.name(real)} and {source}.__code__ is {self.name(real.__code__)}"
            )
        if isinstance(real, types.BuiltinFunctionType | types.ModuleType | type):
            return f"{source} is {self.name(real)}"
        same_type = f"type({source}) is {self.name(type(real))}"
        if type(real) is float:  # 0.0 == -0.0, and nan is not equal to itself
            return f"{same_type} and repr({source}) == {repr(real)!r}"
        return f"{same_type} and {source} == {real!r}" if type(real) in LITERALS else same_type

    def input(self, value: Given) -> Tensor:
        if value.source not in self.inputs:
            real = value.real
            if type(real) not in (torch.Tensor, torch.nn.Parameter) or real.layout != torch.strided:
                raise Unsupported(f"a tensor of type {type(real).__name__}")
            self.guards[f"same_kind({value.source}, {kind_of(real)!r})"] = None
            with self.graph.inserting_before(next(iter(self.graph.nodes), None)):
                node = self.graph.placeholder(f"input_{len(self.inputs)}")
            example = torch.empty_strided(
                real.shape, real.stride(), dtype=real.dtype, device="meta"
            )
            self.inputs[value.source] = Tensor(node, example, value.source)
        return self.inputs[value.source]

    def constant(self, value: Any) -> Any:
        return Known(value)

    def unbound(self, name: str) -> Any:
        raise Unsupported("a variable without a value")

    def global_(self, function: Any, name: str) -> Any:
        module = self.name(function.__globals__)
        if name in function.__globals__:
            return Given(f"{module}[{name!r}]", function.__globals__[name])
        if name not in function.__builtins__:
            raise Unsupported("a name without a value")
        self.guards[f"{name!r} not in {module}"] = None
        return Known(function.__builtins__[name])

    def truth(self, value: Any) -> bool:
        value = self.read(value)
        if isinstance(value, Tensor):
            raise Unsupported("a branch on the data of a tensor")
        if not isinstance(value, LITERALS):
            raise Unsupported("the truth of an object")
        return bool(value)

    def build(self, kind: str, parts: list[Any]) -> Any:
        if kind == "BUILD_LIST":
            raise Unsupported("a new list, which could be changed later")
        return Parts(parts)

    def write(self, instr: Instruction, operands: list[Any]) -> None:
        raise Unsupported("a write to an object")

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        if isinstance(function, Given) and isinstance(function.real, types.FunctionType):
            frame = None if is_torch(function.real) else frame_for(self.read(function), args)
            if frame is not None:
                return Invoke(frame)
        target, operands = self.read(function), [self.read(arg) for arg in args]
        if isinstance(target, Method):
            return self.record("call_method", target.name, [target.tensor, *operands])
        if is_torch(target) and any(isinstance(part, Tensor) for part in operands):
            return self.record("call_function", target, operands)
        if any(target is each for each in PURE) and all(
            isinstance(part, LITERALS) for part in operands
        ):
            return Known(really(target, operands))
        raise Unsupported(f"a call of {getattr(target, '__name__', target)}")

    def operate(self, instr: Instruction, operands: list[Any]) -> Any:
        if instr.op == "LOAD_ATTR":
            return self.attribute(operands[0], instr.arg)
        if instr.op == "BINARY_SUBSCR" and isinstance(operands[0], Parts):
            return operands[0].parts[self.read(operands[1])]
        values = [self.read(part) for part in operands]
        if instr.op == "IS_OP" and not any(value is None for value in values):
            raise Unsupported("the identity of two objects")
        if any(isinstance(value, Tensor) for value in values) and instr.op != "IS_OP":
            return self.record("call_function", operation(instr), values)
        if instr.op == "IS_OP" or all(isinstance(value, LITERALS) for value in values):
            return Known(really(operation(instr), values))
        raise Unsupported(f"{instr.op} of {', '.join(type(value).__name__ for value in values)}")

    def attribute(self, owner: Any, name: str) -> Any:
        value = self.read(owner)
        if isinstance(value, Tensor):
            if name in ("ndim", "dtype"):
                return Known(getattr(value.example, name))
            if callable(getattr(torch.Tensor, name, None)):
                return Method(value, name)
        if isinstance(owner, Given) and not isinstance(value, Tensor):
            # Only what a dictionary holds: anything else may run code of the user's.
            held = (
                vars(value)
                if isinstance(value, types.ModuleType)
                else getattr(value, "__dict__", {})
            )
            if name in held and not hasattr(type(value), name):
                return Given(f"{owner.source}.{name}", held[name])
        raise Unsupported(f"the attribute {name!r} of {type(value).__name__}")

    def record(self, kind: str, target: Any, operands: list[Any]) -> Tensor:
        """One graph node, and its example from running the operation on data-free tensors."""
        if not all(isinstance(part, (Tensor, *LITERALS, torch.dtype)) for part in operands):
            raise Unsupported(f"an operand of {target} that a graph cannot hold")
        examples = [part.example if isinstance(part, Tensor) else part for part in operands]
        run = getattr(torch.Tensor, target) if kind == "call_method" else target
        example = really(run, examples)
        if not isinstance(example, torch.Tensor):
            raise Unsupported(f"{target} gives a {type(example).__name__}")
        nodes = tuple(part.node if isinstance(part, Tensor) else part for part in operands)
        return Tensor(self.graph.create_node(kind, target, nodes), example)


def really(function: Callable[..., Any], operands: list[Any]) -> Any:
    """Run it while tracing. If it raises, Python shall raise it: from the user's own code, by way
    of a break."""
    try:
        return function(*operands)
    except Exception as error:
        raise Unsupported(f"it raises {type(error).__name__}") from error


TORCH = {id(fn) for fn in vars(torch).values() if isinstance(fn, types.BuiltinFunctionType)}
TORCH |= {id(fn) for fn in vars(torch.nn.functional).values() if callable(fn)}


def is_torch(function: Any) -> bool:
    """Functions that compute tensors from tensors, in torch and torch.nn.functional."""
    return id(function) in TORCH


# ---- 5. Guards -----------------------------------------------------------------------------------


def kind_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    place = (str(tensor.device), tensor.requires_grad)
    return (type(tensor).__name__, str(tensor.dtype), tuple(tensor.shape), tensor.stride(), *place)


def same_kind(value: Any, kind: tuple[Any, ...]) -> bool:
    return isinstance(value, torch.Tensor) and kind_of(value) == kind


# ---- 3. Breaks: points, sites, continuations -----------------------------------------------------


@attrs.frozen
class Point:
    """A stack of frames as data: what is live and where it stands, not what it is. The key of a
    continuation."""

    frames: tuple[tuple[Any, int, tuple[str, ...], tuple[bool, ...]], ...]

    @classmethod
    def of(cls, frames: list[Frame]) -> Point:
        return cls(
            tuple(
                (f.function, f.pc, tuple(f.slots), tuple(v is NULL for v in f.stack))
                for f in frames
            )
        )

    @property
    def size(self) -> int:
        return sum(len(slots) + nulls.count(False) for _, _, slots, nulls in self.frames)

    def thaw(self, state: tuple[Any, ...]) -> list[Frame]:
        """The frames again, from the flat tuple of their values."""
        values = iter(state)
        return [
            Frame(
                function,
                pc,
                {name: next(values) for name in slots},
                [NULL if null else next(values) for null in nulls],
            )
            for function, pc, slots, nulls in self.frames
        ]


def freeze(frames: list[Frame]) -> tuple[Any, ...]:
    """All live values of all frames, flat."""
    return tuple(v for f in frames for v in (*f.slots.values(), *f.stack) if v is not NULL)


@attrs.frozen
class Site:
    """Where a break is. ``step`` runs one instruction natively and finds the exit it took.

    The packages assemble a stub of the user's own code for it, inside its handlers, with a call
    stub for each frame above, so that tracebacks are real. Here the concrete domain does: same
    result, poorer traceback.
    """

    point: Point
    reason: str

    def step(self, state: tuple[Any, ...]) -> tuple[Point, tuple[Any, ...]]:
        frames = self.point.thaw(state)
        Machine(Concrete()).run(frames, steps=1)
        return Point.of(frames), freeze(frames)


# ---- 6. Entries, the cache, the driver -----------------------------------------------------------


@attrs.frozen(eq=False)
class Entry:
    """One specialised version of a point: readable source, a predicate that says when it is valid,
    and a graph."""

    source: str
    check: Callable[..., bool]
    run: Callable[..., tuple[Any, Any]]
    graph: torch.fx.GraphModule


Backend = Callable[[torch.fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]


def eager(graph: torch.fx.GraphModule, examples: list[torch.Tensor]) -> Callable[..., Any]:
    return graph.forward


def trace(point: Point, state: tuple[Any, ...], backend: Backend) -> Entry:
    """Run the whole stack of the point symbolically, from where it stands; write down what came
    out."""
    domain = Symbolic()
    names = [f"a{i}" for i in range(len(state))]
    frames = point.thaw(tuple(Given(name, real) for name, real in zip(names, state, strict=True)))
    outcome = Machine(domain).run(frames)
    writer = Writer(domain)
    if isinstance(outcome, Returned):
        result = f"return None, {writer.expression(outcome.value)}"
    else:
        site = Site(Point.of(outcome.frames), outcome.reason)
        values = "".join(f"{writer.expression(value)}, " for value in freeze(outcome.frames))
        result = f"return {domain.name(site)}, ({values})  # {outcome.reason}"
    return writer.entry(names, result, backend)


@attrs.define(eq=False)
class Writer:
    """Turns what is live at the end into Python source: reconstruction."""

    domain: Symbolic
    outputs: list[torch.fx.Node] = attrs.field(factory=list)

    def expression(self, value: Any) -> str:
        """An expression for the value; an input is itself, so identity is kept, and a node is
        computed once."""
        match value:
            case Given() | Tensor(source=str()):
                return str(value.source)
            case Tensor():
                if value.node not in self.outputs:
                    self.outputs.append(value.node)
                return f"g[{self.outputs.index(value.node)}]"
            case Parts():
                return f"({''.join(f'{self.expression(part)}, ' for part in value.parts)})"
            case Method():
                return f"{self.expression(value.tensor)}.{value.name}"
        constant = value.value
        return (
            repr(constant)
            if type(constant) in (int, bool, str, type(None))
            else self.domain.name(constant)
        )

    def entry(self, names: list[str], result: str, backend: Backend) -> Entry:
        domain, parameters = self.domain, ", ".join(names)
        domain.graph.output(tuple(self.outputs))
        module = torch.fx.GraphModule({}, domain.graph)
        check = " and\n            ".join(f"({guard})" for guard in domain.guards) or "True"
        # Placeholders were put in front one by one, so the graph takes them last one first.
        inputs = ", ".join(reversed(domain.inputs))
        source = (
            f"def check({parameters}):\n    try:\n"
            f"        return (\n            {check}\n        )\n"
            "    except (KeyError, AttributeError):  # an object that was read is gone\n"
            "        return False\n\n"
            f"def entry({parameters}):\n    g = graph({inputs})\n    {result}\n"
        )
        compiled = backend(module, [each.example for each in reversed(domain.inputs.values())])
        scope: dict[str, Any] = {**domain.captured, "graph": compiled, "same_kind": same_kind}
        exec(compile(source, "<tiny_stator>", "exec"), scope)
        return Entry(source, scope["check"], scope["entry"], module)


@attrs.define(eq=False)
class Compiled:
    """The function with its cache. The driver is one loop: entry, native step, entry …; nothing
    nests."""

    function: Any  # a types.FunctionType
    backend: Backend = eager
    limit: int = 8
    entries: dict[Point, list[Entry]] = attrs.field(factory=dict)

    def __call__(self, *args: Any) -> Any:
        first = frame_for(self.function, args)
        if first is None:
            return self.function(*args)
        point, state = Point.of([first]), args
        while True:
            entry = self.find(point, state)
            if entry is None:  # past the limit: the rest runs plainly, from the middle
                outcome = Machine(Concrete()).run(point.thaw(state))
                assert isinstance(outcome, Returned)
                return outcome.value
            site, value = entry.run(*state)
            if site is None:
                return value
            point, state = site.step(value)

    def find(self, point: Point, state: tuple[Any, ...]) -> Entry | None:
        known = self.entries.setdefault(point, [])
        for entry in known:
            if entry.check(*state):
                return entry
        if len(known) == self.limit:
            return None
        known.insert(0, trace(point, state, self.backend))
        return known[0]

    @property
    def all_entries(self) -> list[Entry]:
        return [entry for found in self.entries.values() for entry in reversed(found)]


# ---- A call to follow ----------------------------------------------------------------------------


def scale(x: torch.Tensor, by: int) -> torch.Tensor:
    y = torch.relu(x) * by
    print("scaled by", by)
    return y + 1


def example(x: torch.Tensor, by: int) -> torch.Tensor:
    y = scale(x - 1, by)
    if y.sum() > 10:
        return y / 2
    return y * 2


if __name__ == "__main__":
    compiled = Compiled(example)
    for scaled in (1, 1, 5):
        x = torch.arange(4.0)
        assert compiled(x, scaled).equal(example(x, scaled))
    for number, found in enumerate(compiled.all_entries):
        print(f"\n---- entry {number}: {len(found.graph.graph.nodes)} nodes\n{found.source}")
