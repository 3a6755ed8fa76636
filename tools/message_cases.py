"""Programs that raise: each is given `stator.compile` or `torch.compile`, and what it raises is
shown in docs/reference/messages.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Compile = Callable[..., Any]
X = torch.ones(2, 3)

CASES: dict[str, Callable[[Compile], object]] = {}
"""The programs by their titles."""


def _case(title: str) -> Callable[[Callable[[Compile], object]], Callable[[Compile], object]]:
    def add(program: Callable[[Compile], object]) -> Callable[[Compile], object]:
        CASES[title] = program
        return program

    return add


def _whole(compile: Compile, fn: Callable[..., Any], *args: Any) -> Any:
    return compile(fn, fullgraph=True, backend="eager")(*(args or (X,)))


@_case("a branch on the value of a tensor")
def branch(compile: Compile) -> object:
    def step(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1

    return _whole(compile, step)


@_case("a branch in a callee")
def branch_in_callee(compile: Compile) -> object:
    def clip(y: torch.Tensor) -> torch.Tensor:
        while y.max() > 1:
            y = y / 2
        return y

    return _whole(compile, lambda x: clip(x * 4))


@_case("print")
def printing(compile: Compile) -> object:
    def step(x: torch.Tensor) -> torch.Tensor:
        print(x.shape, end="", file=None)
        return x + 1

    return _whole(compile, step)


@_case("a file that is opened")
def opened(compile: Compile) -> object:
    def step(x: torch.Tensor) -> torch.Tensor:
        with open("/dev/null") as file:
            return x + len(file.read())

    return _whole(compile, step)


@_case("a listing of files")
def listing(compile: Compile) -> object:
    import os

    def step(x: torch.Tensor) -> torch.Tensor:
        return x * len(os.listdir("/dev/null"))

    return _whole(compile, step)


@_case("a disabled function")
def disabled(compile: Compile) -> object:
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def helper(y: torch.Tensor) -> torch.Tensor:
        return y * 2

    return _whole(compile, lambda x: helper(x) + 1)


@_case("a number of rounds that data decides")
def rounds(compile: Compile) -> object:
    def step(x: torch.Tensor) -> torch.Tensor:
        for i in range(int(x.sum())):
            x = x + i
        return x

    return _whole(compile, step)


@_case("a pause")
def pause(compile: Compile) -> object:
    import time

    def step(x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.0)
        return x + 1

    return _whole(compile, step)


@_case("the name of the machine")
def machine(compile: Compile) -> object:
    import socket

    def step(x: torch.Tensor) -> torch.Tensor:
        return x + len(socket.gethostname())

    return _whole(compile, step)


@_case("a list of the elements")
def elements(compile: Compile) -> object:
    def step(x: torch.Tensor) -> torch.Tensor:
        return x * len(set(x.flatten().tolist()))

    return _whole(compile, step)


@_case("a lock")
def lock(compile: Compile) -> object:
    import threading

    mutex = threading.Lock()

    def step(x: torch.Tensor) -> torch.Tensor:
        with mutex:
            return x + 1

    return _whole(compile, step)


@_case("a view from a branch of cond")
def view_of_branch(compile: Compile) -> object:
    def step(x: torch.Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x[:1], (x,))

    return _whole(compile, step)


@_case("a size marked dynamic that is fixed")
def marked(compile: Compile) -> object:
    def step(x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(2, 3)

    x = torch.ones(2, 3)
    torch._dynamo.mark_dynamic(x, 0)
    return _whole(compile, step, x)


@_case("an attribute that does not exist")
def attribute(compile: Compile) -> object:
    def step(x: torch.Tensor) -> Any:
        return x.sin().shap  # type: ignore[attr-defined]

    return compile(step, backend="eager")(X)


@_case("a missing argument")
def missing(compile: Compile) -> object:
    def scale(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    return compile(lambda x: scale(x + 1), backend="eager")(X)  # type: ignore[call-arg]


@_case("a missing compiler")
def no_compiler(compile: Compile) -> object:
    from torch._inductor import config

    with config.patch({"cpp.cxx": ("no_such_compiler",), "force_disable_caches": True}):
        return compile(lambda x: (x + 1).relu(), backend="inductor")(X)


@_case("a backend that does not exist")
def unknown_backend(compile: Compile) -> object:
    return compile(lambda x: x + 1, backend="inducter")(X)


@_case("a mode that does not exist")
def unknown_mode(compile: Compile) -> object:
    return compile(lambda x: x + 1, mode="max-autotun")(X)


@_case("an option that does not exist")
def unknown_option(compile: Compile) -> object:
    return compile(lambda x: x + 1, options={"max_autotun": True})(X)


@_case("an option of the wrong type")
def wrong_option(compile: Compile) -> object:
    return compile(lambda x: x + 1, options={"max_autotune": "yes"})(X)


@_case("what cannot be called")
def not_callable(compile: Compile) -> object:
    return compile(3)


@_case("a backend that raises")
def failing_backend(compile: Compile) -> object:
    def backend(graph: Any, inputs: Any) -> Any:
        raise ValueError("no kernel for this graph")

    return compile(lambda x: x + 1, backend=backend)(X)


@_case("a backend that returns nothing")
def empty_backend(compile: Compile) -> object:
    return compile(lambda x: x + 1, backend=lambda graph, inputs: None)(X)


@_case("shapes that do not fit")
def shapes(compile: Compile) -> object:
    def step(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    return compile(step, backend="eager")(X)


@_case("an argument of the wrong type")
def wrong_argument(compile: Compile) -> object:
    def step(x: Any) -> torch.Tensor:
        return torch.relu(x, "fast")  # type: ignore[call-arg]

    return compile(step, backend="eager")(X)


@_case("an error of the program")
def own_error(compile: Compile) -> object:
    def step(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        raise ValueError(f"no such shape: {tuple(y.shape)}")

    return compile(step, backend="eager")(X)


@_case("a recompilation that is an error")
def recompilation(compile: Compile) -> object:
    compiled = compile(lambda x, scale: x * scale, backend="eager")
    compiled(X, "ab".__len__())
    torch.compiler.set_stance("fail_on_recompile")
    try:
        return compiled(X.double(), 2)
    finally:
        torch.compiler.set_stance("default")


@_case("a backend that raises at an operator")
def failing_operator(compile: Compile) -> object:
    def backend(graph: Any, inputs: Any) -> Any:
        for node in graph.graph.nodes:
            if node.target == "sin":
                raise NotImplementedError("no kernel for sin")

    return compile(lambda x: x.cos() + x.sin(), backend=backend)(X)
