"""Programs with series of calls whose arguments are alike: of the same types, with other sizes,
numbers and objects.

`T x, i k: x * k` is a program of a tensor and an int. Each call of its series gets a tensor with
another number of rows and another int, drawn with the text as the seed. Programs that keep a state
of their own are functions, which give what is compiled and what happens ahead of each call.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

CALLS = 8
Change = Callable[[int], None]
Made = tuple[Callable[..., Any], Change]
"""What is compiled, and what is done ahead of each call."""


class Settings:
    """A plain object; each call gets a fresh one."""

    def __init__(self, n: int, f: float, inner: Settings | None = None) -> None:
        self.n, self.f, self.inner = n, f, inner

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.n + self.f

    @property
    def ratio(self) -> float:
        return self.f / (self.n + 1)


class Measured:
    """A plain object with numbers of NumPy."""

    def __init__(self, n: int, f: float) -> None:
        self.n, self.f = np.int64(n), np.float32(f)


@dataclasses.dataclass
class Config:
    n: int
    f: float = 0.5


class Point(NamedTuple):
    n: int
    f: float


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


@dataclasses.dataclass(frozen=True)
class Task:
    """What to do with a batch: modes among numbers that change."""

    mode: Mode
    reduction: str
    config: Config
    sizes: tuple[int, int]

    @property
    def area(self) -> int:
        return self.sizes[0] * self.sizes[1]


class Scaled(torch.nn.Module):
    def __init__(self, n: int, f: float) -> None:
        super().__init__()
        self.n, self.f = n, f

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.n + self.f


class Draw:
    """The arguments of one series, by the letters of their kinds."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def number(self) -> int:
        return self.random.randrange(10)

    def fraction(self) -> float:
        return self.random.randrange(1, 40) / 8

    def rows(self, columns: int) -> torch.Tensor:
        size = self.random.randrange(2, 10)
        return torch.linspace(-1, 1, size * columns).reshape(size, columns)

    def batch(self, n: int) -> dict[str, Any]:
        x = self.rows(4)
        return {"x": x, "mask": x > 0, "weights": [n / 4, n / 2], "id": n}

    def argument(self, kind: str) -> Any:
        n, f = self.number(), self.fraction()
        made: dict[str, Callable[[], Any]] = {
            "i": lambda: n,
            "f": lambda: f,
            "I": lambda: np.int64(n),
            "J": lambda: np.int32(n),
            "H": lambda: np.float32(f),
            "D": lambda: np.float64(f),
            "T": lambda: self.rows(4),
            "V": lambda: torch.linspace(-1, 1, 4),
            "A": lambda: np.linspace(-1, 1, n + 2),
            "o": lambda: Settings(n, f, Settings(self.number(), self.fraction())),
            "O": lambda: Measured(n, f),
            "c": lambda: Config(n, f),
            "p": lambda: Point(n, f),
            "l": lambda: [n, f],
            "d": lambda: {"n": n, "f": f},
            "m": lambda: Scaled(n, f),
            "t": lambda: [self.rows(4), self.rows(4)],
            "s": lambda: slice(n),
            "b": lambda: self.batch(n),
            "L": lambda: [self.rows(4) for _ in range(n % 3 + 1)],
            "N": lambda: torch.arange(4) < n if n % 2 else None,
            "w": lambda: "sum" if n % 2 else "mean",
            "e": lambda: list(Mode)[n % 2],
            "k": lambda: Task(list(Mode)[n % 2], "sum", Config(n, f), (n + 1, n + 2)),
        }
        return made[kind]()


EXPRESSIONS = """
T x, i k: x * k
T x, f k: x + k
V x, i k: x / (k + 1) - k
V x, i k: x[: k + 1]
T x, i k: x[k % 2] * k
T x, f k: torch.full((2, 3), k) + x[0, 0]
T x, i k: torch.zeros(k + 2, 4) + x[0] * k
T x, f f, i k: x.sum() * f + k
T x, f f: torch.softmax(x / f, -1)
V x, f f: x.clamp(-f, f) ** 2
T x, i k: torch.arange(x.shape[0]) < k
T x, i k: x.repeat(k + 1, 1).mean(0)
V x, i k, f f: x * math.sqrt(k) + math.cos(f)
V x, i k, f f: x.mul_(f).add_(k)
T x: F.dropout(x, 0.5, False) * x.shape[0] / x.numel()
T x, T y: x @ x.T + y[: x.shape[0] - 1].sum()
T x, T y, i k: torch.cat([x, y]) * k
T x, i k, f f: torch.stack([x, x * f, x + k], 1).flatten(1)
V x, I k: x * k
V x, H k: x * k
T x, I k: x + k / 2
V x, I k: x * np.sqrt(k + 1) - k
V x, I k: x[:k]
T x, J k, H f: x * int(k) + float(f)
V x, I k, D f: x.long() * k + k * f
V x, J k, H f: (x * (k * 2 + 1), k, k + f)
T x, H k: torch.full((3,), k) + x[:1, :3]
T x, o o: o.scaled(x)
V x, o o: x * o.ratio + o.inner.n
V x, O o: x * o.n + o.f
T x, c o: x * o.n + o.f
V x, p o: x * o.n + o.f
V x, l l: x * l[0] + l[1]
T x, d d: x * d["n"] + d["f"]
T x, m m: m(x)
t t: sum(each.sum() * k for k, each in enumerate(t))
A a: torch.from_numpy(a) * 2 + len(a)
T x, s s: x.flatten()[s] + 1
T x, s s: x.flatten()[: s.stop] * s.stop
T x, s s: (x + 1, s == slice(2), s != slice(3, None))
t t: torch.cat([each[: min(len(one) for one in t)] for each in t])
t t: t[0] * max([len(each) for each in t]) - max(map(len, t), default=0)
t t: [F.pad(each, (0, 0, 0, max(len(one) for one in t) - len(each))) for each in t]
T x, A a: x * a.mean() + a[0]
T x, A a, f f: x * (a * f).sum() + a.max() / len(a)
T x, f f: x * np.float32(f) + np.exp(-f)
b b: (b["x"] * b["mask"]).sum() * b["weights"][0] + b["id"]
b b: {**b, "x": b["x"] * b["weights"][1], "size": len(b["x"])}
L t: torch.stack([each.mean(0) for each in t]).sum(0) / len(t)
T x, N m: x if m is None else x.masked_fill(m, 0.0)
T x, w w: x.sum(0) if w == "sum" else x.mean(0)
T x, w w: getattr(x, w)(0) * len(w)
T x, e e: x.sum(0) if e is Mode.SUM else x.mean(0)
T x, k k: (x.sum(0) if k.mode is Mode.SUM else x.mean(0)) * k.config.n + k.area
T x, c c: x * dataclasses.replace(c, f=c.f / 2).f + c.n
T x, i i, i k: F.interpolate(x[None, None], size=(i + 2, k + 2), mode="nearest")
V x, p l: x * max(l.f, 0.5) + max([l.f, 1.0]) - min((l.f, 2.0))
V x, f f, f g: x * max(f, g, 0.5) + min([f, g])
"""


def parsed(text: str) -> tuple[list[str], Callable[..., Any]]:
    """Return the kinds of the arguments, and the program as a function."""
    signature, _, expression = text.partition(": ")
    kinds, names = zip(*(part.split() for part in signature.split(", ")), strict=True)
    scope = {
        "torch": torch,
        "F": F,
        "np": np,
        "math": math,
        "Mode": Mode,
        "dataclasses": dataclasses,
    }
    return list(kinds), eval(f"lambda {', '.join(names)}: {expression}", scope)


def series_of(name: str, kinds: list[str]) -> list[tuple[Any, ...]]:
    draw = Draw(name)
    return [tuple(draw.argument(kind) for kind in kinds) for _ in range(CALLS)]


# -- programs with a state of their own ------------------------------------------------------------
class Counted(torch.nn.Module):
    """Counts its calls, and works with the count."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.step += 1
        return x * self.step


class Annealed(torch.nn.Module):
    """Has a temperature, which somebody sets between the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x / self.temperature, -1)


class Decaying(torch.nn.Module):
    """Has a schedule of its own: warm-up, then decay."""

    def __init__(self) -> None:
        super().__init__()
        self.step, self.rate = 0, 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.step += 1
        self.rate *= 0.9
        return x * self.rate / (1 - 0.99**self.step)


class Invalidated(torch.nn.Module):
    """Caches what a property computes, until a method is called."""

    def __init__(self) -> None:
        super().__init__()
        self.reset(1.0)

    def reset(self, scale: float) -> None:
        self.base = scale
        self.known: float | None = None

    @property
    def scale(self) -> float:
        if self.known is None:
            self.known = self.base * 2
        return self.known

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def counter_of_a_module() -> Made:
    return Counted(), lambda call: None


def temperature_of_a_module() -> Made:
    module = Annealed()

    def change(call: int) -> None:
        module.temperature = 0.9**call

    return module, change


def schedule_of_a_module() -> Made:
    return Decaying(), lambda call: None


def property_with_invalidation() -> Made:
    module = Invalidated()
    return module, lambda call: module.reset(1.5 + call)


def attribute_of_an_object() -> Made:
    settings = Settings(1, 0.5)

    def change(call: int) -> None:
        settings.n, settings.f = call, call / 4

    return lambda x: x * settings.n + settings.f, change


def closure_cell() -> Made:
    count = 0

    def count_and_scale(x: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        return x * count

    return count_and_scale, lambda call: None


def elements_of_containers() -> Made:
    numbers, named = [0, 1.0], {"calls": 0}

    def count(x: torch.Tensor) -> torch.Tensor:
        numbers[0] += 1
        numbers[1] *= 0.5
        named["calls"] = named.get("calls", 0) + 1
        return x * numbers[0] + numbers[1] * named["calls"]

    return count, lambda call: None


total, listed, replaced = 0, [1], torch.ones(4)


def globals_that_change() -> Made:
    def change(call: int) -> None:
        global total, replaced
        total, listed[0], replaced = call, call + 3, torch.full((4,), float(call))

    def read(x: torch.Tensor) -> torch.Tensor:
        return x * total + listed[0] * replaced

    return read, change


def blocks_with_an_index() -> Made:
    blocks = torch.nn.Sequential(*(Scaled(index, index / 2) for index in range(12)))
    return blocks, lambda call: None


class Cached(torch.nn.Module):
    """Keeps what it was given, as a decoder does with keys."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.keys = x if self.keys is None else torch.cat([self.keys, x])
        return torch.softmax(x @ self.keys.T, -1) @ self.keys


def growing_cache() -> Made:
    return Cached(), lambda call: None


def moving_average() -> Made:
    average, step = torch.zeros(4), 0

    def update(x: torch.Tensor) -> torch.Tensor:
        nonlocal step
        step += 1
        decay = min(0.9, (1 + step) / (10 + step))
        average.mul_(decay).add_(x.mean(0), alpha=1 - decay)
        return average / (1 - 0.9**step)

    return update, lambda call: None


def rates_of_groups() -> Made:
    groups: list[dict[str, Any]] = [
        {"lr": 0.1, "weight": torch.ones(4)},
        {"lr": 0.2, "weight": torch.zeros(4)},
    ]

    def step(x: torch.Tensor) -> list[torch.Tensor]:
        return [group["weight"] - group["lr"] * x.mean(0) for group in groups]

    def decay(call: int) -> None:
        for group in groups:
            group["lr"] = 0.9**call

    return step, decay


def latest_losses() -> Made:
    losses: collections.deque[float] = collections.deque([1.0, 1.0, 1.0], maxlen=3)

    def scale(x: torch.Tensor) -> torch.Tensor:
        return x / (sum(losses) / len(losses)) + losses[-1]

    return scale, lambda call: losses.append(call / 3)


def counts_by_name() -> Made:
    counts = {"train": 0, "eval": 0}

    def count(x: torch.Tensor) -> torch.Tensor:
        counts["train"] += 1
        counts["eval"] += 2
        return x * counts["train"] + counts["eval"]

    return count, lambda call: None


STATEFUL: list[Callable[[], Made]] = [
    counter_of_a_module,
    temperature_of_a_module,
    schedule_of_a_module,
    property_with_invalidation,
    attribute_of_an_object,
    closure_cell,
    elements_of_containers,
    globals_that_change,
    blocks_with_an_index,
    growing_cache,
    moving_average,
    rates_of_groups,
    latest_losses,
    counts_by_name,
]


def programs() -> dict[str, Callable[[], tuple[Made, list[tuple[Any, ...]]]]]:
    """Return by name: makes a program anew, with its series."""

    def written(text: str) -> tuple[Made, list[tuple[Any, ...]]]:
        kinds, function = parsed(text)
        return (function, lambda call: None), series_of(text, kinds)

    def stateful(make: Callable[[], Made]) -> tuple[Made, list[tuple[Any, ...]]]:
        return make(), series_of(make.__name__, ["T"])

    found = {text: functools.partial(written, text) for text in EXPRESSIONS.strip().split("\n")}
    return found | {make.__name__: functools.partial(stateful, make) for make in STATEFUL}
