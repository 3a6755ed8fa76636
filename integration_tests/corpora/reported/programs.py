"""The programs: each function makes one, with a world of its own and a series of calls."""

from __future__ import annotations

import collections
import copy
import dataclasses
import datetime
import enum
import functools
import importlib
import io
import itertools
import json
import logging
import os
import re
import string
import time
import typing
import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import torch

Calls = Iterator[tuple[Any, ...]]
Program = tuple[Callable[..., Any], Calls]

PROGRAMS: dict[str, Callable[[], Program]] = {}


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    PROGRAMS[make.__name__] = make
    return make


def repeated(*args: Any) -> Calls:
    """Return calls with the same arguments."""
    return itertools.repeat(args)


def batches(*sizes: int) -> Calls:
    """Return calls with batches of these sizes, from the start again at the end."""
    return ((torch.ones(size, 3),) for size in itertools.cycle(sizes))


# -- numbers that change ---------------------------------------------------------------------------


class Annealed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.temperature = 1.0

    def forward(self, x: torch.Tensor) -> Any:
        return torch.softmax(x / self.temperature, -1)


@program
def float_attribute_that_decays() -> Program:
    model = Annealed()

    def calls() -> Calls:
        while True:
            yield model, torch.ones(2, 3)
            model.temperature *= 0.9

    return lambda m, x: m(x), calls()


class Counted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def forward(self, x: torch.Tensor) -> Any:
        self.step += 1
        return x * self.step


@program
def int_attribute_that_counts_calls() -> Program:
    return Counted().forward, repeated(torch.ones(2, 3))


@program
def int_attribute_that_counts_calls_of_changing_batches() -> Program:
    return Counted().forward, batches(2, 5, 7)


class Derived:
    """A property that is computed again after a method has set what it depends on."""

    def __init__(self) -> None:
        self.base = 1.0
        self._scale: float | None = None

    def set_base(self, value: float) -> None:
        self.base, self._scale = value, None

    @property
    def scale(self) -> float:
        if self._scale is None:
            self._scale = self.base * 2
        return self._scale


@program
def property_with_invalidation() -> Program:
    derived = Derived()

    def calls() -> Calls:
        for value in itertools.count():
            derived.set_base(value + 0.5)
            yield derived, torch.ones(3)

    return lambda d, x: x * d.scale, calls()


@program
def int_arguments_from_zero() -> Program:
    return lambda x, k: x + k, ((torch.ones(3), k) for k in itertools.count())


class Block(torch.nn.Module):
    def __init__(self, index: int) -> None:
        super().__init__()
        self.index, self.linear = index, torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) * (self.index + 1)


@program
def blocks_with_a_layer_index() -> Program:
    torch.manual_seed(0)
    blocks = torch.nn.ModuleList([Block(index) for index in range(12)])
    return lambda block, x: block(x), (
        (block, torch.ones(2, 3)) for block in itertools.cycle(blocks)
    )


@program
def slices_of_sizes_read_from_a_tensor() -> Program:
    def fn(lengths: torch.Tensor, x: torch.Tensor) -> Any:
        mask = torch.zeros(len(lengths), 6, 6)
        for i in range(len(lengths)):
            s = lengths[i].item()
            mask[i, :s, :s] = 1
        return mask * x

    varying = itertools.cycle([[2, 3], [4, 1], [5, 5]])
    return fn, ((torch.tensor(lengths), torch.ones(6)) for lengths in varying)


COUNTERS: dict[str, Any] = {"calls": 0}
SEEN: list[int] = []
TOTAL = 0
SCALE = torch.ones(3)


@program
def globals_mutated_and_a_global_tensor_replaced() -> Program:
    global TOTAL, SCALE
    TOTAL, SCALE = 0, torch.ones(3)
    COUNTERS["calls"] = 0
    SEEN.clear()

    def fn(x: torch.Tensor) -> Any:
        global TOTAL, SCALE
        TOTAL += 1
        COUNTERS["calls"] += 1
        SEEN.append(len(SEEN))
        SCALE = SCALE + 1
        return x * SCALE + TOTAL

    return fn, repeated(torch.ones(3))


# -- hooks and caches ------------------------------------------------------------------------------


@program
def hooks_added_and_removed() -> Program:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 3)

    def calls() -> Calls:
        while True:
            yield model, torch.ones(2, 3)
            handle = model.register_forward_hook(lambda module, args, output: output + 1)
            yield model, torch.ones(2, 3)
            handle.remove()

    return lambda m, x: m(x), calls()


class LazilyCached(torch.nn.Module):
    @property
    def table(self) -> Any:
        if "_table" not in self.__dict__:
            self.__dict__["_table"] = torch.arange(3.0)
        return self.__dict__["_table"]

    def forward(self, x: torch.Tensor) -> Any:
        return x * self.table


@program
def cache_filled_through_the_instance_dict() -> Program:
    return LazilyCached(), repeated(torch.ones(3))


# -- output and the standard library ---------------------------------------------------------------

log = logging.getLogger(__name__)


@program
def logging_with_lazy_arguments_in_a_loop() -> Program:
    def fn(x: torch.Tensor) -> Any:
        for i in range(4):
            x = x * 2
            log.debug("step %d of %s", i, "four")
        return x

    return fn, repeated(torch.ones(3))


@program
def warnings_in_a_loop() -> Program:
    def fn(x: torch.Tensor) -> Any:
        for _ in range(4):
            x = x * 2
            warnings.warn("deprecated", DeprecationWarning, stacklevel=2)
        return x

    return fn, repeated(torch.ones(3))


@program
def progress_bar() -> Program:
    tqdm = importlib.import_module("tqdm").tqdm
    quiet = io.StringIO()

    def fn(x: torch.Tensor) -> Any:
        for _ in tqdm(range(10), file=quiet):
            x = x + 1
        return x

    return fn, repeated(torch.ones(3))


@program
def standard_library_in_forward() -> Program:
    def fn(x: torch.Tensor, text: str) -> tuple[torch.Tensor, Any]:
        start = time.perf_counter()
        settings = json.loads(text)
        y = x * settings["scale"]
        name = os.path.join("a", "b.txt")
        stamp = datetime.datetime.now().isoformat()
        token = uuid.uuid4().hex
        z = y + len(os.path.splitext(name)[1])
        return z, (time.perf_counter() >= start, len(stamp) > 5, len(token))

    return fn, repeated(torch.ones(3), '{"scale": 3}')


# -- random streams --------------------------------------------------------------------------------


@program
def rejection_sampling() -> Program:
    def fn(concentration: torch.Tensor) -> Any:
        distribution: Any = torch.distributions.Normal(concentration, 1.0)
        sample = distribution.sample()
        return distribution.log_prob(sample).sum()

    return fn, repeated(torch.ones(3))


@program
def sampling_from_a_circle() -> Program:
    def fn(location: torch.Tensor) -> Any:
        distribution: Any = torch.distributions.VonMises(location, location + 1)
        return distribution.sample() * location

    return fn, repeated(torch.ones(2))


@program
def initialization_in_the_region() -> Program:
    def fn(weight: torch.Tensor) -> Any:
        torch.nn.init.xavier_uniform_(weight)
        torch.nn.init.trunc_normal_(weight)
        return weight * 2

    return fn, ((torch.empty(3, 3),) for _ in itertools.count())


@program
def generator_argument() -> Program:
    generator = torch.Generator()
    return lambda x, g: x + torch.randn(3, generator=g), repeated(torch.ones(3), generator)


@program
def seeded_and_forked() -> Program:
    def fn(x: torch.Tensor) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            y = x + torch.randn(3)
        return y * 2

    return fn, repeated(torch.ones(3))


# -- recurrent layers and metrics ------------------------------------------------------------------


@program
def gru_over_packed_sequences() -> Program:
    torch.manual_seed(0)
    gru = torch.nn.GRU(3, 4, batch_first=True)

    def fn(x: torch.Tensor, lengths: torch.Tensor) -> Any:
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        output, _ = gru(packed)
        padded, _ = torch.nn.utils.rnn.pad_packed_sequence(output, batch_first=True)
        return padded * 2

    varying = itertools.cycle([[5, 3], [4, 4], [5, 1], [3, 2]])
    return fn, ((torch.ones(2, 5, 3), torch.tensor(lengths)) for lengths in varying)


@program
def lstm_with_carried_state() -> Program:
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(3, 4)
    state: list[Any] = [None]

    def fn(x: torch.Tensor) -> Any:
        output, carried = lstm(x, state[0])
        state[0] = tuple(item.detach() for item in carried)
        return output * 2

    return fn, repeated(torch.ones(5, 2, 3))


class Accuracy(torch.nn.Module):
    """A metric in the style of torchmetrics: states by name, update wrapped, computed value
    cached."""

    def __init__(self) -> None:
        super().__init__()
        self.correct: Any = None
        self.total: Any = None
        self._defaults: dict[str, torch.Tensor] = {}
        self._computed: Any = None
        self._update_count = 0
        for name in ("correct", "total"):
            self.add_state(name, torch.tensor(0.0))

    def add_state(self, name: str, default: torch.Tensor) -> None:
        setattr(self, name, default)
        self._defaults[name] = copy.deepcopy(default)

    def update(self, predicted: torch.Tensor, target: torch.Tensor) -> None:
        self._computed = None
        self._update_count += 1
        self.correct = self.correct + (predicted.argmax(-1) == target).sum()
        self.total = self.total + target.numel()

    def compute(self) -> Any:
        if self._computed is None:
            self._computed = self.correct / self.total
        return self._computed

    def forward(self, predicted: torch.Tensor, target: torch.Tensor) -> Any:
        self.update(predicted, target)
        return self.compute()


@program
def metric_updated_in_the_step() -> Program:
    metric = Accuracy()
    return lambda x, y: metric(x * 2, y), repeated(torch.eye(3), torch.arange(3))


# -- classes ---------------------------------------------------------------------------------------


class Registering(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        made.registered = True
        return made


class Described:
    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else getattr(instance, self.name)

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(instance, self.name, value * 2)


class Base(metaclass=Registering):
    kinds: typing.ClassVar[list[str]] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.kinds.append(cls.__name__)


class Slotted(Base):
    __slots__ = ("_width", "registered")
    width = Described()

    def __init__(self, width: int) -> None:
        self.width = width


@program
def metaclass_descriptor_and_slots() -> Program:
    def fn(x: torch.Tensor) -> Any:
        made = Slotted(2)
        return x * made.width + getattr(made, "registered")

    return fn, repeated(torch.ones(3))


@program
def subclass_made_in_the_region() -> Program:
    def fn(x: torch.Tensor) -> Any:
        class Made(Base):
            factor = 3

        return x * Made().factor

    return fn, repeated(torch.ones(3))


def applying(method: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: method(x) + 1


@program
def closures_over_method_descriptors() -> Program:
    functions = [applying(m) for m in (torch.Tensor.sin, torch.Tensor.cos, torch.Tensor.tanh)]
    return lambda f, x: f(x), ((f, torch.ones(3)) for f in itertools.cycle(functions))


@typing.runtime_checkable
class Scaling(typing.Protocol):
    factor: int

    def scale(self, x: torch.Tensor) -> Any: ...


class Doubling:
    factor = 2

    def scale(self, x: torch.Tensor) -> Any:
        return x * self.factor


@program
def instance_of_a_protocol() -> Program:
    return (lambda s, x: s.scale(x) if isinstance(s, Scaling) else x), repeated(
        Doubling(), torch.ones(3)
    )


@program
def functional_call() -> Program:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 3))
    params = {name: p.detach() * 2 for name, p in model.named_parameters()}

    def fn(p: dict[str, torch.Tensor], x: torch.Tensor) -> Any:
        return torch.func.functional_call(model, p, (x,))

    return fn, repeated(params, torch.ones(2, 3))


# -- text, arrays and transforms -------------------------------------------------------------------


@program
def text_deciding_a_branch() -> Program:
    pattern = re.compile(r"(\w+)-(\d+)")
    template = string.Template("$kind/$size")

    def fn(x: torch.Tensor, name: str) -> Any:
        found = pattern.match(name)
        if found and int(found.group(2)) > 3:
            x = x * 2
        if f"{name:>8}".startswith(" "):
            x = x + 1
        return x - len(template.substitute(kind=name, size=3))

    return fn, repeated(torch.ones(3), "layer-4")


@program
def array_methods_in_place() -> Program:
    def fn(a: np.ndarray, x: torch.Tensor) -> Any:
        b = a.copy()
        b.sort()
        b.fill(2)
        c = np.asarray([b, a])
        return x + torch.from_numpy(c).sum()

    return fn, ((np.array([3.0, 1.0, 2.0]), torch.ones(3)) for _ in itertools.count())


@program
def vmap_of_jacrev_with_aux() -> Program:
    def fn(x: torch.Tensor) -> Any:
        def inner(v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = v.sin()
            return y, y.sum()

        return torch.func.vmap(torch.func.jacrev(inner, has_aux=True))(x)

    return fn, repeated(torch.ones(2, 3))


# -- lazy modules and configurations ---------------------------------------------------------------


@program
def first_calls_of_a_lazy_module() -> Program:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.ReLU(), torch.nn.LazyLinear(2))
    return model, repeated(torch.ones(2, 3))


@dataclasses.dataclass(frozen=True)
class Settings:
    name: str
    sizes: tuple[int, ...] = (2, 3)


class Mode(enum.Flag):
    FAST = enum.auto()
    EXACT = enum.auto()


class Configuration(collections.UserDict[str, Any]):
    """Reads in the style of OmegaConf: attributes are keys, missing ones looked for in a parent."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "data":
            raise AttributeError(name)
        if name in self.data:
            return self.data[name]
        raise AttributeError(name)


@program
def configuration_read_by_attributes() -> Program:
    settings = Configuration({"width": 3, "inner": Configuration({"scale": 2.0})})
    allowed = frozenset({("width", 3), ("depth", 2)})

    def fn(x: torch.Tensor, c: Any) -> Any:
        if ("width", c.width) in allowed:
            x = x * c.inner.scale
        return x + c.width

    return fn, repeated(torch.ones(3), settings)


@program
def members_of_sets_of_objects() -> Program:
    known = frozenset({Settings("a"), Settings("b")})
    dtypes = {torch.float32, torch.float64}

    def fn(x: torch.Tensor, s: Settings, mode: Mode) -> Any:
        if s in known and x.dtype in dtypes and Mode.FAST in mode:
            return x * sum(s.sizes)
        return x

    return fn, repeated(torch.ones(3), Settings("a"), Mode.FAST | Mode.EXACT)


@attrs.frozen
class Width:
    width: int
    scale: float = 2.0


@program
def attrs_configuration_evolved() -> Program:
    def fn(x: torch.Tensor, w: Width) -> Any:
        changed = attrs.evolve(w, width=w.width + 1)
        return x * changed.width * changed.scale

    return fn, repeated(torch.ones(3), Width(3))


@program
def pydantic_configuration() -> Program:
    pydantic: Any = importlib.import_module("pydantic")
    model = pydantic.create_model("Model", width=(int, 3), names=(list[str], ["a"]))

    def fn(x: torch.Tensor, m: Any) -> Any:
        return x * m.width + len(m.names)

    return fn, repeated(torch.ones(3), model())


@program
def pydantic_model_of_a_tensor() -> Program:
    pydantic: Any = importlib.import_module("pydantic")
    options = pydantic.ConfigDict(arbitrary_types_allowed=True)
    fields = {"values": (torch.Tensor, ...), "scale": (float, 2.0)}
    scaled = pydantic.create_model("Scaled", __config__=options, **fields)

    def fn(x: torch.Tensor) -> Any:
        made = scaled(values=x * 2)
        return made.values * made.scale

    return fn, repeated(torch.ones(3))


@dataclasses.dataclass
class Batch:
    values: Any
    label: str = "a"


@program
def dict_of_a_fresh_object_with_a_tensor() -> Program:
    def fn(x: torch.Tensor) -> Any:
        made = dataclasses.asdict(Batch(x * 2))
        return made["values"] + 1

    return fn, repeated(torch.ones(3))


@program
def result_cached_by_a_tuple() -> Program:
    @functools.cache
    def scale(shape: tuple[int, ...], kind: str) -> float:
        return len(shape) * 2.0

    return lambda x: x * scale(tuple(x.shape), "a"), repeated(torch.ones(3))
