"""Texts made of sizes: who only hands one on has one graph for all sizes; who looks at it has one
for each."""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from integration_tests.guards_and_recompiles.shape_sequences import numbered
from integration_tests.support.counting import Counting
from integration_tests.support.oracle import assert_same

check: Any = torch._check
SIZES = (5, 6, 7, 11, 123, 3, 1004)
Function = Callable[..., Any]


class Note:
    def __init__(self, text: str = "") -> None:
        self.text = text


class Failure(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Color(enum.StrEnum):
    RED = "red"


def require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def required(x: Tensor) -> Any:
    require(x.dim() == 2, f"no matrix but {x.shape}")
    assert x.shape[0] > 2, f"only {x.shape[0]} rows"
    check(x.shape[0] > 2, lambda: f"only {x.shape[0]} rows")
    return x + 1


def caught(x: Tensor) -> Any:
    try:
        try:
            raise Failure(f"bad {x.shape}")
        except Failure as failure:
            raise ValueError(f"outer: {failure}") from failure
    except ValueError as error:
        return (
            x + 1,
            str(error),
            error.args,
            str(error.__cause__),
            getattr(error.__cause__, "message", None),
        )


def stored(x: Tensor) -> Any:
    note, held = Note(), {"a": f"{x.shape[0]}", "b": [f"{x.shape}"]}
    note.text = f"layer_{x.shape[0]}"
    setattr(note, "other", held["a"])
    held.update(c=note.text)
    return x + 1, note, held, collections.OrderedDict(held)


def of_generators(x: Tensor) -> Any:
    def counted() -> Iterator[str]:
        start = f"{x.shape[0]:>4}"
        for i in range(3):
            yield f"{i}:{start}"

    waiting = counted()
    first = next(waiting)
    return x + 1, first, list(waiting), ", ".join(counted()), ",".join(str(n) for n in x.shape)


def over_a_break(x: Tensor) -> Any:
    def counted() -> Iterator[str]:
        start = f"start {x.shape[0]}"
        yield start
        yield start

    waiting, text = counted(), f"n={x.shape[0]}"
    first = next(waiting)
    stator.graph_break()
    return x * 2, text, first, next(waiting)


def nested(x: Tensor) -> Any:
    n = x.shape[0]

    def inner(name: str = "a", **named: str) -> Function:
        nonlocal n
        n += 1
        return lambda: (f"{n}-{name}", named)

    made = inner(f"d{n}", other=f"e{n}")
    return x + 1, made(), made


def in_bodies(x: Tensor) -> Any:
    def body(v: Tensor) -> Any:
        w = torch.cat([v, v])
        return w * 2, f"inside {w.shape[0]}"

    def more(v: Tensor) -> Tensor:
        require(v.shape[0] > 2, f"only {v.shape[0]}")
        return v + v.shape[0]

    y, text = checkpoint(body, x, use_reentrant=False)
    return torch.cond(x.sum() > 40, more, lambda v: v - 1, (y,)), text


PERCENT: dict[str, Function] = {
    "%d %s %4d %r %05d %%": lambda n, shape: (n, shape, n, n, n),
    "%(a)s": lambda n, shape: {"a": n},
    "%s": lambda n, shape: n,
    "<%s>": lambda n, shape: f"{n}",
    "%s %s": lambda n, shape: (f"{n}", "b"),
}
REFUSED_PERCENT: dict[str, Function] = {
    "%d %d": lambda n, shape: n,
    "%d": lambda n, shape: (n, n),
    "%(a)d": lambda n, shape: n,
    "a %q": lambda n, shape: n,
    "%d %é": lambda n, shape: (n, n),
    "%s%": lambda n, shape: n,
    "a": lambda n, shape: n,
}
TEMPLATES = ("{} {:>5} {{}} {a!r} {b[0]}", "{0}{0}{1}{c}", "{}")


def formats(x: Tensor) -> Any:
    n = x.shape[0]
    yield (
        x + 1,
        f"{n} {n!s} {n!r} {n!a} {n:04d} {n:,} {n:x} {n:>9} {n:.2f} {n:+} {n * 2 - 1} {n // 2} {n > 5} {{}}",
    )
    yield (
        str(n),
        repr(n),
        str(x.shape),
        repr(x.shape),
        f"{x.shape}",
        format(n, "05"),
        str((n, 1)),
        repr([n, {1: n}]),
    )
    yield [template % choose(n, x.shape) for template, choose in PERCENT.items()]
    yield (
        [template.format(n, n * 2, a=x.shape, b=x.shape, c=f"{n}") for template in TEMPLATES],
        "{a}".format_map({"a": n}),
    )
    yield (
        "a" + str(n) + "b",
        Color.RED + f"{n}",
        ",".join(map(str, x.shape)),
        "x".join((str(n), "a")),
    )
    yield str(n).join("abc"), "".join([str(n)]), str(collections.defaultdict(int, {"a": n}))


def errors(x: Tensor) -> Any:
    n, found = x.shape[0], []
    nothing: Any = None
    shape: Any = x.shape
    tries: list[Function] = [
        lambda: f"{n:zz}",
        lambda: f"{n:.3d}",
        lambda: f"{n}" + nothing,
        lambda: f"{n}" + shape,
    ]
    tries += [lambda: ",".join([f"{n}", shape[0]]), lambda: f"{x.shape:>4}"]
    tries += [lambda t=t, c=c: t % c(n, x.shape) for t, c in REFUSED_PERCENT.items()]
    for attempt in tries:
        try:
            attempt()
        except (TypeError, ValueError) as error:
            found.append(str(error))
    return x + 1, found


def identities(x: Tensor) -> Any:
    text = f"{x.shape[0]} rows"
    return (
        x + 1,
        [text, text],
        {"a": text},
        text is None,
        text or 3,
        not text,
        isinstance(text, str),
        type(text),
    )


def chosen(x: Tensor, message: str | None = None) -> Any:
    message = message or f"size {x.shape}"
    match message:
        case None:
            return x
        case str():
            return x + 1, message if message is not None else 2


HANDED_ON = [
    required,
    caught,
    stored,
    of_generators,
    nested,
    in_bodies,
    formats,
    errors,
    identities,
    chosen,
]

LOOKED_AT: dict[str, Function] = {
    "equal": lambda x: (x + 1, f"{x.shape[0]}" == "5"),
    "unequal": lambda x: (x + 1, f"{x.shape[0]}" != "3"),
    "less": lambda x: (x + 1, f"{x.shape[0]}" < "6"),
    "contains": lambda x: (x + 1, "5" in f"{x.shape[0]}"),
    "contained": lambda x: (x + 1, f"{x.shape[0]}" in ["5", "6"]),
    "length": lambda x: (x + 1, len(f"{x.shape[0]}")),
    "key": lambda x: (x + 1, {f"{x.shape[0]}": 1}),
    "member": lambda x: (x + 1, {f"{x.shape[0]}"}),
    "hash": lambda x: (x + 1, hash(f"{x.shape[0]}") == hash("5")),
    "method": lambda x: (x + 1, f"a{x.shape[0]}".upper(), f"{x.shape[0]} b".split()),
    "int": lambda x: (x + 1, int(f"{x.shape[0]}")),
    "item": lambda x: (x + 1, f"{x.shape[0]}"[0]),
    "items": lambda x: (x + 1, [*f"{x.shape[0]}"]),
    "name": lambda x: (x + 1, getattr(Note, f"layer_{x.shape[0]}", 3)),
    "aligned": lambda x: (x + 1, f"{x.shape[0]!s:>6}"),
    "repeated": lambda x: (x + 1, f"{x.shape[0]}" * 2),
    "shown": lambda x: (x + 1, repr(f"{x.shape[0]}")),
    "bytes": lambda x: (x + 1, f"{x.shape[0]}".encode()),
    "computed float": lambda x: (x + 1, f"{x.shape[0] * 0.1 + 0.2}"),
    "prefix": lambda x: (x + 1, f"{x.shape[0]}".startswith("5")),
}


def graphs(fn: Function, **options: Any) -> int:
    """How many the sizes take."""
    plain: Function = (lambda x: list(fn(x))) if fn is formats else fn
    backend, arguments = Counting(), iter([(numbered(n, 2),) for n in SIZES])
    compiled = stator.compile(plain, backend=backend, recompile_limit=20, **options)
    assert_same(plain, compiled, lambda: next(arguments), calls=len(SIZES))
    return backend.count


@pytest.mark.parametrize("fn", HANDED_ON, ids=lambda fn: str(fn.__name__))
def test_text_that_is_handed_on_is_made_by_the_entry(fn: Function) -> None:
    assert graphs(fn, fullgraph=True) == 2


@pytest.mark.parametrize("name", LOOKED_AT)
def test_text_that_is_looked_at_is_a_constant(name: str) -> None:
    assert graphs(LOOKED_AT[name], fullgraph=True) == len(SIZES)


def test_text_lives_over_a_break() -> None:
    assert graphs(over_a_break) == 2


def test_text_looked_at_after_a_break_fixes_what_comes_then() -> None:
    def f(x: Tensor) -> Any:
        text = f"{x.shape[0]}"
        y = x + 1
        stator.graph_break()
        return y * 2 if text == "5" else y * 3

    assert graphs(f) == 2 + len(SIZES)


class Noting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.note, self.seen = "", {"a": ""}

    def forward(self, x: Tensor) -> Tensor:
        self.note, self.seen["a"] = f"last {x.shape}", f"{x.shape[0]}"
        return x * 2


def test_text_as_an_effect() -> None:
    ours, theirs = Noting(), Noting()
    backend, arguments = Counting(), iter([(numbered(n, 2),) for n in SIZES])
    compiled = stator.compile(theirs.forward, backend=backend, fullgraph=True)
    assert_same(
        ours.forward, compiled, lambda: next(arguments), calls=len(SIZES), owners=(ours, theirs)
    )
    assert backend.count == 2


def test_text_of_what_only_data_tell() -> None:
    def f(x: Tensor) -> Any:
        kept = x[x > 3]
        text = f"loss {x.sum().item():.4f} of {int(x.sum().item())}, {kept.shape[0]} rows, {kept.shape}"
        return x * 2, text, kept

    assert graphs(f, fullgraph=True) == 2


def test_text_of_data_that_is_looked_at_is_refused() -> None:
    compiled = stator.compile(
        lambda x: (x + 1, len(f"{x.sum().item()}")), backend="eager", fullgraph=True
    )
    with pytest.raises(stator.Unsupported, match="a number that depends on data"):
        compiled(numbered(3))


def test_entry_shows_how_the_text_is_made() -> None:
    def f(x: Tensor) -> Any:
        return x * 2, f"{x.shape[0]:>4} of {{}}", str(x.shape[0])

    compiled = stator.compile(f, backend="eager", dynamic=True)
    compiled(numbered(4))
    (entry,) = compiled.report.entries
    assert "'{:>4} of {{}}'.format(v0)" in str(entry)
    assert "str(v0)" in str(entry)


def _renamed(a: Any) -> Any:
    return a


class _Unsubscriptable:
    __class_getitem__ = None


def test_errors_name_functions_as_they_are_now_and_no_class_with_none_for_its_items() -> None:
    named: Any = _renamed
    without_items: Any = _Unsubscriptable

    def fn(x: torch.Tensor) -> Any:
        found, calls = [], [named, lambda: without_items[int]]
        for call in calls:
            try:
                call()
            except TypeError as error:
                found.append(str(error))
        return x + 1, found

    compiled = stator.compile(fn, backend="eager")
    for name in ("one", "one", "two", "one"):
        named.__qualname__ = name
        assert str(compiled(torch.ones(2))) == str(fn(torch.ones(2)))
