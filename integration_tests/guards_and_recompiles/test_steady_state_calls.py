"""A steady-state call evaluates guards, runs the graph and applies effects: what is decided once is
not decided again.

From the fourth call on the frames of stator are followed instruction by instruction: they make no
function or class, assemble no code, and do not call the collector, which is the way to what an
object refers to. The backend keeps the outputs of the first call, so that nothing but stator's own
part of a call runs.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import pathlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
import stator
import stator_guards
import torch
import transformers
from torch import Tensor, nn

PACKAGES = str(pathlib.Path(stator.__file__).resolve().parents[3])
MAKING = {dis.opmap[name] for name in ("MAKE_FUNCTION", "LOAD_BUILD_CLASS")}
BUILDING = ("exec", "compile", "__build_class__")
"""Builtins that make code."""
SINGLE_STEPS = ("exhausts_unobserved",)
"""Functions that take one step through the collector: there is no other way from an iterator to its
dict."""


class Work:
    """What stator's frames do, beside plain calls, while it is active."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    @contextmanager
    def followed(self) -> Iterator[None]:
        before = sys.gettrace(), sys.getprofile()
        sys.settrace(self._enter)
        sys.setprofile(self._call)
        try:
            yield
        finally:
            sys.settrace(before[0])
            sys.setprofile(before[1])

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        filename = frame.f_code.co_filename
        if not is_own(filename):
            return None
        if "/_codec/" in filename:
            self.found.add(f"{frame.f_code.co_qualname} of the codec")
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if (
            event == "opcode"
            and code.co_code[frame.f_lasti] in MAKING
            and not is_comprehension(frame)
        ):
            self.found.add(f"a function or class made in {code.co_qualname}, line {frame.f_lineno}")
        return self._step

    def _call(self, frame: FrameType, event: str, arg: Any) -> None:
        if event != "c_call" or not is_own(frame.f_code.co_filename):
            return
        if frame.f_code.co_name in SINGLE_STEPS:
            return
        if arg.__module__ == "gc" or arg.__name__ in BUILDING:
            self.found.add(
                f"{arg.__name__} called in {frame.f_code.co_qualname}, line {frame.f_lineno}"
            )


def is_own(filename: str) -> bool:
    return filename.startswith((PACKAGES, "<stator "))


def is_comprehension(frame: FrameType) -> bool:
    """Return whether the function that is being made is a comprehension or a generator
    expression."""
    position = frame.f_lasti // 2
    unit = next(
        i
        for i, instr in enumerate(dis.get_instructions(frame.f_code))
        if instr.offset == 2 * position
    )
    before = list(dis.get_instructions(frame.f_code))[:unit]
    made = next(
        instr.argval
        for instr in reversed(before)
        if instr.opname == "LOAD_CONST" and is_code(instr.argval)
    )
    return made.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def is_code(value: object) -> bool:
    return isinstance(value, type(is_code.__code__))


def keeps_outputs(module: Any, inputs: Any, **options: Any) -> Callable[..., Any]:
    """A backend whose graphs give the outputs of their first call."""
    kept: list[Any] = []

    def run(*args: Any) -> Any:
        if not kept:
            kept.append(module(*args))
        return kept[0]

    return run


def work_of(fn: Callable[..., Any], *args: Any) -> set[str]:
    compiled = stator.compile(fn, backend=keeps_outputs)
    for _ in range(24):  # more than the guards are evaluated one by one
        compiled(*args)
    work = Work()
    with work.followed():
        for _ in range(7):
            compiled(*args)
    return work.found


# -- programs --------------------------------------------------------------------------------------
def batch_norm() -> tuple[Any, ...]:
    """A training step of a network with batch norms, its loss in the region."""
    layers = [nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()) for _ in range(10)]
    model = nn.Sequential(*layers)

    def step(x: Tensor, target: Tensor) -> Tensor:
        return nn.functional.mse_loss(model(x), target)

    return step, torch.randn(4, 8), torch.randn(4, 8)


def llama() -> tuple[Any, ...]:
    """A decoder that walks its configuration with generators, and makes a cache."""
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**sizes, num_key_value_heads=1, vocab_size=50)
    )
    model.eval()
    return lambda ids: model(ids).logits, torch.randint(0, 50, (2, 6))


def t5() -> tuple[Any, ...]:
    config = transformers.T5Config(
        d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, vocab_size=50
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    ids = torch.randint(0, 50, (2, 6))
    return lambda ids: model(input_ids=ids, decoder_input_ids=ids).logits, ids


@functools.lru_cache(16)
def split_of(pattern: str, sizes: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """A recipe, kept as those of einops are: lists of known and unknown lengths."""
    return [0, 1, 2, 3], [*sizes, -1]


@dataclasses.dataclass
class Intermediates:
    hiddens: list[Tensor] | None = None
    scores: Tensor | None = None
    masks: tuple[Tensor, ...] = ()


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_q, self.to_kv, self.out = (
            nn.Linear(dim, dim),
            nn.Linear(dim, 2 * dim),
            nn.Linear(dim, dim),
        )

    def split(self, x: Tensor) -> Tensor:
        order, lengths = split_of("b n (h d) -> b h n d", (self.heads,))
        known = list(lengths)
        known[-1] = x.shape[-1] // self.heads
        return x.reshape([*x.shape[:2], *known]).permute([order[0], 2, 1, order[3]])

    def forward(
        self, x: Tensor, context: Tensor | None = None, rotary: Tensor | None = None
    ) -> tuple[Tensor, Intermediates]:
        k, v = map(self.split, self.to_kv(x if context is None else context).chunk(2, dim=-1))
        q = self.split(self.to_q(x))
        if rotary is not None:
            q, k = q * rotary.cos(), k * rotary.cos()
        scores = (q @ k.transpose(-1, -2)).softmax(dim=-1)
        made = Intermediates(scores=scores, masks=(scores > 0,))
        return self.out((scores @ v).transpose(1, 2).flatten(2)), made


class Layers(nn.Module):
    """Layers of several kinds, gone through together, as those of x-transformers are."""

    def __init__(self, dim: int, depth: int) -> None:
        super().__init__()
        self.layer_types = ("a", "c", "f") * depth
        blocks = (
            nn.Linear(dim, dim) if kind == "f" else Attention(dim, 2) for kind in self.layer_types
        )
        parts = ([nn.LayerNorm(dim), block] for block in blocks)
        self.layers = nn.ModuleList(nn.ModuleList(pair) for pair in parts)
        self.register_buffer("rotary", torch.rand(1, 1, 6, 8))

    def forward(
        self, x: Tensor, context: Tensor, mems: list[Tensor | None] | None = None
    ) -> tuple[Tensor, list[Any]]:
        hiddens: list[Tensor] = []
        intermediates: list[Intermediates] = []
        mems = mems.copy() if mems is not None else [None] * len(self.layers)
        variables = (self.layer_types, self.layers)
        for kind, (norm, block) in zip(*tuple(tuple(each) for each in variables), strict=True):
            hiddens.append(x)
            if mems:
                mems.pop(0)
            if kind == "f":
                x = x + block(norm(x))
                continue
            given = {"context": context} if kind == "c" else {"rotary": self.rotary}
            out, made = block(norm(x), **given)
            intermediates.append(made)
            x = x + out
        return x, intermediates


def cross_attending() -> tuple[Any, ...]:
    model = Layers(16, 2).eval()

    def run(x: Tensor, context: Tensor) -> Any:
        return model(x, context)[0]

    return run, torch.randn(2, 6, 16), torch.randn(2, 6, 16)


class Timed(nn.Module):
    """A block that breaks between its layers, while the frames of its callers hold modules, lists
    and dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.seconds = 0.0

    def forward(self, x: Tensor) -> Any:
        settings = {"scale": 2.0, "order": [1, 0]}
        started = time.perf_counter()
        hidden = [self.first(x) * settings["scale"]]
        self.seconds += time.perf_counter() - started
        return self.second(hidden.pop())


def broken() -> tuple[Any, ...]:
    blocks = nn.ModuleList([Timed(), Timed()])

    def run(x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        for block in blocks:
            x = block(x)
            seen.append(x)
        return seen[-1] + len(seen)

    return run, torch.randn(2, 8)


def optimizer_of(layers: int) -> torch.optim.Optimizer:
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(layers)))
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    return torch.optim.Adam(model.parameters())


def optimizer_step() -> tuple[Any, ...]:
    optimizer = optimizer_of(4)

    def run() -> None:
        optimizer.step()

    return (run,)


PROGRAMS = (optimizer_step, batch_norm, llama, t5, cross_attending, broken)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_steady_state_call_decides_nothing_again(program: Callable[[], tuple[Any, ...]]) -> None:
    torch.manual_seed(0)
    assert work_of(*program()) == set()


def test_guards_of_an_optimizer_step_do_not_read_its_state() -> None:
    """Of each parameter they read the gradient, which is another tensor in each step."""
    optimizer = optimizer_of(8)

    def step() -> None:
        optimizer.step()

    compiled = stator.compile(step, backend=lambda graph, inputs: graph.forward)
    for _ in range(4):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = torch.ones_like(parameter)
        compiled()

    watched = [entry.compiled_guards.watched for entry in compiled.report.entries]
    assert watched[-1]
    assert set(re.findall(r"params_\d+\.(\w+)", watched[-1])) == {"grad"}
    assert "exp_avg" not in watched[-1]


class Kept:
    """What a layer keeps between two calls."""

    def __init__(self) -> None:
        self.states = torch.randn(2, 8)
        self.scale = 2.0
        self.length = 0


class Cache:
    """A cache as generation makes one for each text, between the weights of a model in its order of
    use."""

    def __init__(self) -> None:
        self.layers = [Kept() for _ in range(12)]


def test_a_new_object_in_each_call_is_planned_for_in_the_first() -> None:
    """From the second call on no code is made for it, and its values are those of the new
    object."""
    model = nn.ModuleList([nn.Linear(8, 8) for _ in range(12)])
    given: list[Any] = []

    def run(x: Tensor, cache: Cache) -> Tensor:
        for layer, kept in zip(model, cache.layers, strict=True):
            x = layer(x) * kept.scale + kept.states
        return x

    def backend(module: Any, inputs: Any, **options: Any) -> Callable[..., Any]:
        def graph(*args: Any) -> Any:
            given.append(args)
            return module(*args)

        return graph

    compiled = stator.compile(run, backend=backend)
    x = torch.randn(2, 8)
    compiled(x, Cache())
    caches = [Cache() for _ in range(6)]
    work = Work()
    with work.followed():
        for cache in caches:
            compiled(x, cache)

    assert work.found == set()
    for cache, args in zip(caches, given[1:], strict=True):
        passed = set(map(id, args))
        assert passed == {
            id(x),
            *map(id, model.parameters()),
            *(id(k.states) for k in cache.layers),
        }


@pytest.mark.parametrize("rounds", [2, 4, 9])
def test_each_round_of_a_loop_with_a_break_is_expected(
    rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A steady call looks no entry up: neither in the rounds of the loop nor at its end."""

    @stator.compile(backend="eager")
    def run(x: Tensor, times: int) -> Tensor:
        for _ in range(times):
            x = x * 2
            print("", end="")
        return x + times - 1

    x = torch.ones(3)
    for _ in range(4):
        run(x, rounds)
    looked_up: list[str] = []
    lookup = stator_guards.Cache.lookup

    def noted(cache: Any, *args: Any) -> Any:
        looked_up.append(cache.name)
        return lookup(cache, *args)

    monkeypatch.setattr(stator_guards.Cache, "lookup", noted)
    assert torch.equal(run(x, rounds), x * 2**rounds + rounds - 1)
    assert looked_up == []
    # other numbers of rounds are looked up where they end, and still right
    assert torch.equal(run(x, rounds + 1), x * 2 ** (rounds + 1) + rounds)
    assert torch.equal(run(x, 1), x * 2)
