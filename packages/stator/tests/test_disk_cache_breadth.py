"""The cache on disk, for programs of many kinds: a second process gives what Python gives, and
interprets nothing.

`stator.reset()` stands for the end of the process.
"""

from __future__ import annotations

import copy
import pathlib
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stator
import torch
from stator_bytecode import Machine

X = torch.linspace(-1.0, 1.0, 12).reshape(3, 4)
Program = Callable[[], tuple[Any, list[tuple[Any, ...]]]]
"""Makes a function or module, and the arguments of its calls."""


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("STATOR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions at which traces began."""
    begun: list[str] = []
    plain = Machine.run

    def counted(self: Any, frames: Any) -> Any:
        begun.append(frames[-1].code.raw.co_qualname)
        return plain(self, frames)

    monkeypatch.setattr(Machine, "run", counted)
    return begun


def outcomes(program: Program, backend: str | None) -> list[Any]:
    """Return what the calls of a program give in a process of its own, and what they change."""
    stator.reset()
    torch.manual_seed(7)
    random.seed(7)
    fn, calls = program()
    subject = fn
    if backend is not None:
        subject = stator.compile(fn, backend=backend, options={"cache": True})
    return [*_called(subject, calls), list(_state(fn)), random.random(), torch.rand(())]


def _called(subject: Any, calls: list[tuple[Any, ...]]) -> Iterator[Any]:
    for args in calls:
        given = copy.deepcopy(args)
        try:
            result = subject(*given)
        except (ValueError, KeyError) as error:
            result = type(error), str(error)
        yield copied((result, given))


def _state(fn: Any) -> Iterator[Any]:
    owner = getattr(fn, "__self__", fn)
    for name, value in vars(owner).items():
        if isinstance(value, int | float | list | dict | torch.Tensor) and name[0] != "_":
            yield name, copied(value)
    if isinstance(module := getattr(owner, "model", owner), torch.nn.Module):
        for name, value in module.named_parameters():
            yield name, copied(value), copied(value.grad)
        for name, value in module.named_buffers():
            yield name, value.clone()


def copied(value: Any) -> Any:
    """Return values as they are now, of tensors whether they require gradients."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone(), value.requires_grad
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return type(value)(map(copied, value)) if type(value) in (list, tuple) else value


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.allclose(one, other, 1e-3, 1e-5)
    if isinstance(one, dict) and type(one) is type(other):
        return equal([*one.items()], [*other.items()])
    if isinstance(one, list | tuple):
        same = type(one) is type(other) and len(one) == len(other)
        return same and all(map(equal, one, other))
    return type(one) is type(other) and bool(one == other)


# -- programs --------------------------------------------------------------------------------------
def scaled(x: Any, k: Any = 2) -> Any:
    return (x * k).sum(0) + x.shape[0]


def sizes() -> Any:
    return scaled, [(torch.ones(n, 4),) for n in (3, 5, 6, 3, 2)]


def sizes_that_decide() -> Any:
    def fn(x: Any) -> Any:
        if x.shape[0] > 4:
            x = x.sin()
        return x.reshape(-1, 2, x.shape[1] // 2).sum((1, 2))

    return fn, [(torch.ones(n, 4),) for n in (3, 5, 6, 3, 2)]


def numbers() -> Any:
    return scaled, [(X, k) for k in (2, 3, 4, 0.5, 0.25, -1.5, 7)]


def related_sizes() -> Any:
    def fn(x: Any, y: Any) -> Any:
        return torch.cat([x, y]).sum(0) if x.shape[0] == y.shape[0] else x.sum(0)

    pairs = [(3, 3), (4, 4), (5, 5), (5, 6), (7, 8), (9, 9)]
    return fn, [(torch.ones(n, 4), torch.ones(m, 4)) for n, m in pairs]


def marked_sizes() -> Any:
    def fn(x: Any) -> Any:
        return x.sin() * x.shape[0]

    def marked(n: int) -> Any:
        x = torch.ones(n, 4)
        stator.mark_dynamic(x, 0)
        return x

    return fn, [(marked(n),) for n in (3, 5)]


def helper(x: Any) -> Any:
    y = x.cos()
    stator.graph_break()
    return y + 1


def broken() -> Any:
    def fn(x: Any) -> Any:
        stator.graph_break()
        y = helper(x) * 2
        return y.sum()

    return fn, [(X,), (X + 1,)]


def broken_in_a_module() -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), Breaking(), torch.nn.Linear(4, 2))
    return model, [(X,), (X,)]


class Breaking(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        y = x * 3
        stator.graph_break()
        return y.relu()


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        x.transpose(0, 1)  # nothing uses it: the graph has a gap in the names of its nodes
        first, second = self.fc(x).split(2, 1)
        return torch.cat([second.transpose(0, 1).relu(), first.transpose(0, 1)]).transpose(0, 1)


def equal_blocks() -> Any:
    return torch.nn.Sequential(*[Block() for _ in range(4)]).requires_grad_(False), [(X,), (X,)]


def broken_in_a_loop() -> Any:
    def fn(x: Any) -> Any:
        total = []
        for step in range(3):
            x = x * 2
            stator.graph_break()
            total.append(x.sum() + step)
        return total

    return fn, [(X,), (X,)]


def broken_in_a_closure() -> Any:
    scale = 3

    def fn(x: Any) -> Any:
        bias = 1

        def inner(y: Any) -> Any:
            stator.graph_break()
            return y * scale + bias

        return inner(x).sin()

    return fn, [(X,), (X,)]


def broken_with_other_sizes() -> Any:
    def fn(x: Any) -> Any:
        x = x * x.shape[0]
        stator.graph_break()
        return x.sum(0) + x.shape[0]

    return fn, [(torch.ones(n, 4),) for n in (3, 5, 6)]


def branch_on_data() -> Any:
    def fn(x: Any) -> Any:
        if x.sum() > 0:
            return x.sin()
        return x.cos()

    return fn, [(X + 1,), (X - 1,), (X + 1,)]


def raising() -> Any:
    def fn(x: Any, key: str) -> Any:
        y = x + 1
        if key == "bad":
            raise ValueError(f"no {key}")
        return {"good": y}[key]

    return fn, [(X, "good"), (X, "bad"), (X, "other"), (X, "bad")]


def handling() -> Any:
    def fn(x: Any) -> Any:
        try:
            y = x.sin()
            stator.graph_break()
            raise KeyError("a")
        except KeyError as error:
            return y, error.args

    return fn, [(X,), (X,)]


def generating() -> Any:
    def halves(x: Any) -> Iterator[Any]:
        for _ in range(3):
            x = x / 2
            yield x

    def fn(x: Any) -> Any:
        total = x
        for each in halves(x):
            stator.graph_break()
            total = total + each
        return total

    return fn, [(X,), (X,)]


def random_numbers() -> Any:
    def fn(x: Any) -> Any:
        return x * random.random() + random.randint(0, 5)

    return fn, [(X,), (X,), (X,)]


def dropout() -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).train()
    return model, [(X,), (X,), (X,)]


def noise() -> Any:
    def fn(x: Any) -> Any:
        return x + torch.randn_like(x) + torch.rand(4)

    return fn, [(X,), (X,)]


def seeding() -> Any:
    def fn(x: Any) -> Any:
        torch.manual_seed(3)
        return x + torch.rand(4)

    return fn, [(X,), (X,)]


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.log: list[Any] = []
        self.seen: dict[str, Any] = {}
        self.norm = torch.nn.BatchNorm1d(4)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.log.append(x.shape[0])
        self.seen["last"] = x.mean(0)
        self.mean = self.mean * 0.5 + x.mean(0)
        return self.norm(x) - self.mean


def attributes() -> Any:
    return Counting(), [(X,), (X + 1,), (X,)]


def containers() -> Any:
    def fn(x: Any, items: Any, named: Any) -> Any:
        items.append(x + 1)
        named.setdefault("x", []).append(len(items))
        items.reverse()
        return named.pop("old", None)

    return fn, [(X, [1], {"old": 3}), (X, [1], {"old": 3})]


def in_place() -> Any:
    def fn(x: Any) -> Any:
        x.mul_(2)
        x[0] = 1
        return x.t_()

    return fn, [(X,), (X,)]


class Trainer:
    def __init__(self, name: str, **options: Any) -> None:
        nn = torch.nn
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))
        self.optimizer = getattr(torch.optim, name)(self.model.parameters(), lr=0.1, **options)

    def step(self, x: Any) -> Any:
        self.optimizer.zero_grad()
        loss = self.model(x).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def training_by_sgd() -> Any:
    return Trainer("SGD", momentum=0.9).step, [(X,)] * 4


def training_by_adamw() -> Any:
    return Trainer("AdamW").step, [(X,)] * 4


def training_in_pieces() -> Any:
    trainer = Trainer("SGD")

    def loss_of(x: Any) -> Any:
        loss = trainer.model(x).square().mean()
        loss.backward()
        stator.graph_break()
        return loss.detach()

    loss_of.__dict__["model"] = trainer.model
    return loss_of, [(X,), (X,)]


def without_gradients() -> Any:
    weight = torch.ones(4, requires_grad=True)

    def fn(x: Any) -> Any:
        y = x * weight
        with torch.no_grad():
            z = y * 2
        return y, z

    return fn, [(X,), (X,)]


def under_autocast() -> Any:
    def fn(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x.t()
        return y, x @ x.t()

    return fn, [(X,), (X,)]


PROGRAMS = [
    sizes,
    sizes_that_decide,
    numbers,
    related_sizes,
    marked_sizes,
    broken,
    broken_in_a_module,
    equal_blocks,
    broken_in_a_loop,
    broken_in_a_closure,
    broken_with_other_sizes,
    branch_on_data,
    raising,
    handling,
    generating,
    random_numbers,
    dropout,
    noise,
    seeding,
    attributes,
    containers,
    in_place,
    training_by_sgd,
    training_by_adamw,
    training_in_pieces,
    without_gradients,
    under_autocast,
]


SAMPLE = (broken_in_a_module, related_sizes, branch_on_data, random_numbers)
"""The programs that CI runs each time."""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(each, marks=() if each in SAMPLE else pytest.mark.slow, id=each.__name__)
        for each in PROGRAMS
    ],
)
def test_second_process_gives_what_python_gives_and_interprets_nothing(
    program: Program, interpreted: list[str]
) -> None:
    expected = outcomes(program, None)
    first = outcomes(program, "eager")
    assert equal(first, expected)
    assert interpreted
    interpreted.clear()
    second = outcomes(program, "eager")
    assert equal(second, expected)
    assert not interpreted


def test_graph_from_a_file_is_that_of_the_trace_with_its_names() -> None:
    graphs = []
    for note in ("written to the cache", "from the cache"):
        stator.reset()
        model, _ = equal_blocks()
        compiled = stator.compile(model, backend="eager", options={"cache": True})
        compiled(X)
        assert notes(compiled) == [note]
        graphs.append(compiled.report.data()["entries"][0]["graph"])
    assert graphs[0] == graphs[1]
    assert "transpose_1 " in graphs[0]
    assert "transpose " not in graphs[0]


# -- what has changed ------------------------------------------------------------------------------
def notes(compiled: Any) -> list[str]:
    return [note for entry in compiled.report.data()["entries"] for note in entry["cache"]]


@pytest.mark.parametrize(
    ("before", "after"),
    [("y.cos()", "y.tan()"), ("z + 1", "z + 2"), ("x * 2", "x * 3")],
    ids=["before the break", "behind the break", "in the caller"],
)
def test_change_of_code_around_a_break_is_noticed(before: str, after: str) -> None:
    text = """
import stator

def helper(y):
    z = y.cos()
    stator.graph_break()
    return z + 1

def program(x):
    return helper(x) + x * 2
"""
    assert before in text
    for source in (text, text.replace(before, after)):
        stator.reset()
        module = types.ModuleType("program_with_a_break")
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "program_with_a_break", module)
            exec(compile(source, "program_with_a_break.py", "exec"), vars(module))
            compiled = stator.compile(module.program, backend="eager", options={"cache": True})
            assert torch.equal(compiled(X), module.program(X))


def test_sizes_of_a_symbolic_graph_may_be_others_in_a_later_process(
    interpreted: list[str],
) -> None:
    for sizes in ((3, 5), (9, 7, 12)):
        interpreted.clear()
        stator.reset()
        compiled = stator.compile(scaled, backend="eager", options={"cache": True})
        for n in sizes:
            assert torch.equal(compiled(torch.ones(n, 4)), scaled(torch.ones(n, 4)))
    assert not interpreted
    assert len(compiled.report.data()["entries"]) == 1


def test_state_of_an_optimizer_is_not_made_for_a_file_that_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def compiled_step(factor: int) -> tuple[Any, Any]:
        stator.reset()
        trainer = Trainer("SGD", momentum=0.9)

        def step(x: Any) -> Any:
            if factor > 1:
                return x * factor
            return trainer.step(x)

        return trainer, stator.compile(step, backend="eager", options={"cache": True})

    _, first = compiled_step(1)
    first(X)
    trainer, second = compiled_step(2)
    assert torch.equal(second(X), X * 2)
    assert not trainer.optimizer.state
    assert any("does not fit" in note for note in notes(second))
