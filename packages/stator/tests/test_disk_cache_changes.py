"""The cache on disk, for programs that change in one place between two processes: the second one
gives what Python gives.

`stator.reset()` stands for the end of the process.
"""

from __future__ import annotations

import pathlib
import sys
import types
from typing import Any

import pytest
import stator
import torch

NAME = "program_that_changes"
HEAD = "import collections, dataclasses, enum, functools, os, torch\nF = torch.nn.functional\n"
X = torch.linspace(-1.0, 1.0, 12).reshape(3, 4)


def expression(definitions: str, value: str) -> str:
    return f"{definitions}\ndef make():\n    return lambda x: {value}\n"


def model(change: str) -> str:
    return f"""
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x) * getattr(self, "k", 1)

def make():
    torch.manual_seed(0)
    m = Model()
    {change}
    return m
"""


GETTER = "class C:\n    def __getattr__(self, name): return <>\nc = C()"
BASES = (
    "class A:\n    def f(self, x): return x * 2\n"
    "class B:\n    def f(self, x): return x * 3\nclass C(<>): pass\nc = C()"
)
HOOK = "m.fc.register_forward_hook(lambda module, args, result: result + <>)"
CHANGES: dict[str, tuple[str, str, str]] = {
    "sign of a zero": (expression("G = <>", "x.abs() * G"), "0.0", "-0.0"),
    "type of a number": (expression("G = <>", "(x, str(G))"), "1", "True"),
    "order of a dict": (expression("G = <>", "[*G]"), "{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}"),
    "nested item": (expression("G = <>", "(x + 1, str(G))"), "[{'a': [1]}]", "[{'a': [2]}]"),
    "default": (expression("def h(x, *, k=<>): return x * k", "h(x)"), "2", "3"),
    "defaults that were set": (
        expression("def h(x, k=2): return x * k\nh.__defaults__ = (<>,)", "h(x)"),
        "2",
        "3",
    ),
    "code that was set": (
        expression(
            "def h(x): return x * 2\ndef g(x): return x * 3\nh.__code__ = <>.__code__", "h(x)"
        ),
        "h",
        "g",
    ),
    "partial": (expression("h = functools.partial(torch.add, other=<>)", "h(x)"), "2", "3"),
    "base class": (expression(BASES, "c.f(x)"), "A", "B"),
    "order of base classes": (expression(BASES, "c.f(x)"), "A, B", "B, A"),
    "__getattr__": (expression(GETTER, "x * c.k"), "2", "3"),
    "attribute that is there": (
        expression("class C:\n    <> = 1\nc = C()", "x * getattr(c, 'k', 7)"),
        "other",
        "k",
    ),
    "member of an enum": (
        expression("class E(enum.Enum):\n    A = <>", "x * E.A.value"),
        "2",
        "3",
    ),
    "field of a dataclass": (
        expression("@dataclasses.dataclass\nclass D:\n    k: int = <>", "x * D().k"),
        "2",
        "3",
    ),
    "slot": (expression("class C: __slots__ = ('k',)\nc = C()\nc.k = <>", "x * c.k"), "2", "3"),
    "operator method": (
        expression("class C:\n    def __mul__(self, x): return x * <>\nc = C()", "c * x"),
        "2",
        "3",
    ),
    "result of a generator": (
        expression("def g():\n    yield <>", "sum([x * k for k in g()])"),
        "1",
        "2",
    ),
    "name of a function": (expression("K = '<>'", "getattr(F, K)(x)"), "relu", "sigmoid"),
    "value of a tensor": (expression("T = torch.tensor(<>)", "x * T"), "2.0", "3.0"),
    "item of a tensor": (expression("T = torch.tensor(<>)", "x * T.item()"), "2.0", "3.0"),
    "literal in a tensor": (expression("", "x + torch.tensor([<>])"), "2.0", "3.0"),
    "environment": (
        expression("os.environ['PROGRAM_LEVEL'] = '<>'", "x * int(os.getenv('PROGRAM_LEVEL'))"),
        "2",
        "3",
    ),
    "buffer in place of a number": (
        model("m.<>"),
        "k = 2",
        "register_buffer('k', torch.tensor(3.0))",
    ),
    "hook": (model(HOOK), "1", "2"),
    "hook that is new": (model("<>"), "pass", HOOK.replace("<>", "1")),
    "gradient of a parameter": (model("<>"), "pass", "m.fc.bias.requires_grad_(False)"),
    "strides of a parameter": (model("<>"), "pass", "m.fc.weight.data = m.fc.weight.data.t()"),
    "shape of a parameter": (model("m.fc = torch.nn.Linear(4, <>)"), "4", "5"),
    "class of a module": (model("m.fc = torch.nn.<>()"), "ReLU", "Tanh"),
    "argument of a module": (model("m.fc = torch.nn.LayerNorm(4, eps=<>)"), "1e-5", "0.1"),
    "forward of an instance": (model("<>"), "pass", "m.fc.forward = lambda x: x * 4"),
}
SAMPLE = ("sign of a zero", "order of base classes")
"""The changes that CI runs each time."""


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PROGRAM_LEVEL", "")


def imported(text: str) -> Any:
    module = types.ModuleType(NAME)
    sys.modules[NAME] = module
    exec(compile(HEAD + text, f"{NAME}.py", "exec"), vars(module))
    return module.make()


def shown(value: Any) -> str:
    """Return a text that is equal for equal results, with signs of zeros and gradients."""
    with torch.no_grad():
        return repr(value)


@pytest.mark.parametrize(
    "change",
    [pytest.param(each, marks=() if each in SAMPLE else pytest.mark.slow) for each in CHANGES],
)
def test_program_that_changed_gives_what_python_gives(change: str) -> None:
    program, before, after = CHANGES[change]
    try:
        for text in (before, after):
            stator.reset()
            fn = imported(program.replace("<>", text))
            compiled = stator.compile(fn, backend="eager", options={"cache": True})
            assert shown(compiled(X)) == shown(fn(X))
    finally:
        sys.modules.pop(NAME, None)
