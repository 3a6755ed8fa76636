"""Programs exported by stator are those of torch.export, and torch's tools take them."""

from __future__ import annotations

import io
import logging
import pathlib
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import stator
import torch
from torch.export import ExportedProgram

from integration_tests.export import comparison
from integration_tests.export.programs import (
    DIFFERENT,
    EQUAL,
    ONLY_STATOR,
    PROGRAMS,
    SAME_ERROR,
    Program,
)
from integration_tests.export.table import PAGE, page


def with_outcome(*outcomes: str) -> list[str]:
    return [name for name, program in PROGRAMS.items() if program.outcome in outcomes]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def by_stator(program: Program) -> ExportedProgram:
    made = comparison.by_stator(program)
    if made.error is not None:
        raise made.error
    assert made.program is not None
    return made.program


@pytest.mark.parametrize("name", with_outcome(EQUAL))
def test_program_is_that_of_torch(name: str) -> None:
    program = PROGRAMS[name]
    ours, theirs = by_stator(program), comparison.by_torch(program).program
    assert theirs is not None
    for facet, read in comparison.FACETS.items():
        assert (facet, read(ours)) == (facet, read(theirs))
    for args in (program.args, *program.others):
        given = args(), program.kwargs()
        comparison.assert_equal_trees(comparison.run(ours, *given), comparison.run(theirs, *given))


@pytest.mark.parametrize("name", with_outcome(SAME_ERROR))
def test_error_is_that_of_torch(name: str) -> None:
    ours, theirs = (
        made(PROGRAMS[name]).error for made in (comparison.by_stator, comparison.by_torch)
    )
    assert ours is not None
    assert theirs is not None
    assert type(ours) is type(theirs)
    assert comparison.suggestion(ours) == comparison.suggestion(theirs)


@pytest.mark.parametrize("name", with_outcome(ONLY_STATOR, DIFFERENT))
def test_program_is_that_of_python(name: str) -> None:
    program = PROGRAMS[name]
    made, kwargs = by_stator(program), program.kwargs()
    for args in (program.args(), *(other() for other in program.others)):
        result, *_, state = comparison.run(made, args, kwargs)
        eager = program.make()
        comparison.assert_equal_trees(result, eager(*args, **kwargs))
        comparison.assert_equal_trees(state, dict(eager.state_dict()))


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page()


# -- tools of torch --------------------------------------------------------------------------------
COMPOSED = with_outcome(EQUAL)[::3]


@pytest.mark.parametrize("name", COMPOSED)
def test_decomposed_program_gives_the_same(name: str) -> None:
    program = PROGRAMS[name]
    made, given = by_stator(program), (program.args(), program.kwargs())
    comparison.assert_equal_trees(
        comparison.run(made.run_decompositions(), *given), comparison.run(made, *given)
    )


@pytest.mark.parametrize("name", COMPOSED)
def test_unflattened_program_gives_the_same(name: str) -> None:
    program = PROGRAMS[name]
    made, args, kwargs = by_stator(program), program.args(), program.kwargs()
    expected, *_ = comparison.run(made, args, kwargs)
    torch.manual_seed(0)
    comparison.assert_equal_trees(torch.export.unflatten(made)(*args, **kwargs), expected)


def test_unflattened_program_has_the_modules_of_the_program() -> None:
    modules = dict(torch.export.unflatten(by_stator(PROGRAMS["layers"])).named_modules())
    assert {"", "fc"} <= modules.keys()


LOAD = """\
import pathlib, sys, torch

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.pt2")):
    args, kwargs, expected = torch.load(path.with_suffix(".pt"), weights_only=False)
    result = torch.export.load(path).module()(*args, **kwargs)
    leaves = torch.utils._pytree.tree_leaves
    for left, right in zip(leaves(result), leaves(expected), strict=True):
        torch.testing.assert_close(left, right)
    print(path.stem)
assert not any(name.startswith("stator") for name in sys.modules)
"""
SAVED = """layers, tied weights, buffer mutation, buffer assignment, non-persistent buffer,
constants, nested containers, symbolic results, cond, while_loop, no_grad, autocast, dynamic integer,
size that data decides, shared submodule"""


def test_saved_programs_run_in_a_process_without_stator(tmp_path: pathlib.Path) -> None:
    names = [name.strip() for name in SAVED.split(",")]
    for name in names:
        program = PROGRAMS[name]
        made, args, kwargs = by_stator(program), program.args(), program.kwargs()
        expected, *_ = comparison.run(made, args, kwargs)
        torch.export.save(made, tmp_path / f"{name}.pt2")
        torch.save((args, kwargs, expected), tmp_path / f"{name}.pt")
    command = [sys.executable, "-c", LOAD, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(names) == done.stdout.splitlines()


# torch saves their arguments by pickle, and fails to log that
PICKLED = ("named tuple", "dataclass of automatic sizes")


@pytest.mark.parametrize("name", [name for name in with_outcome(EQUAL)[::5] if name not in PICKLED])
def test_saved_program_is_loaded_as_it_was(name: str) -> None:
    program = PROGRAMS[name]
    made, file = by_stator(program), io.BytesIO()
    torch.export.save(made, file)
    file.seek(0)
    loaded, given = torch.export.load(file), (program.args(), program.kwargs())
    assert comparison.inputs_of(loaded) == comparison.inputs_of(made)
    assert comparison.ranges_of(loaded) == comparison.ranges_of(made)
    comparison.assert_equal_trees(comparison.run(loaded, *given), comparison.run(made, *given))


@pytest.mark.slow
def test_package_of_aot_inductor_gives_the_same(tmp_path: pathlib.Path) -> None:
    program = PROGRAMS["layers"]
    made = by_stator(program)
    path = torch._inductor.aoti_compile_and_package(made, package_path=str(tmp_path / "layers.pt2"))
    run: Any = torch._inductor.aoti_load_package(path)
    for args in (program.args, *program.others):
        given = args()
        torch.testing.assert_close(run(*given), comparison.run(made, given, {})[0])


# -- what stator rejects ---------------------------------------------------------------------------
def test_incomplete_graph_is_an_error_that_names_the_line() -> None:
    class Printing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x * float(x.sum().item() > 0 and input())

    with pytest.raises(stator.Unsupported) as caught:
        stator.export(Printing(), (torch.ones(2),))
    assert caught.value.where.filename == __file__


def test_call_that_raises_is_an_error_that_names_the_line() -> None:
    class Raising(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            raise ValueError("too small")

    with pytest.raises(
        stator.InvalidUse, match=r"raises an exception(.|\n)*test_exported_programs"
    ):
        stator.export(Raising(), (torch.ones(2),))


def test_function_is_no_subject_of_an_export() -> None:
    with pytest.raises(stator.InvalidUse, match=r"no torch\.nn\.Module"):
        stator.export(torch.sin, (torch.ones(2),))  # type: ignore[arg-type]


def test_exported_module_is_left_as_it_was() -> None:
    program = PROGRAMS["preserved signature"]
    made = program.make()
    before = {name: dict(vars(part)) for name, part in made.named_modules()}
    stator.export(made, program.args(), preserve_module_call_signature=("block",))
    assert before == {name: dict(vars(part)) for name, part in made.named_modules()}
    assert not made.get_submodule("block")._forward_hooks


# -- transforms and shared parameters --------------------------------------------------------------
def module_of(function: Any) -> torch.nn.Module:
    return type("Net", (torch.nn.Module,), {"forward": lambda self, x: function(x)})()  # type: ignore[no-any-return]


def pulled_twice(x: Any) -> Any:
    transform: Any = torch.func.vjp
    out, pull = transform(lambda y: y.sin() * x, x)
    return pull(x)[0] + pull(out)[0]


def pulled_with_others(x: Any) -> Any:
    transform: Any = torch.func.vjp
    out, pull, others = transform(lambda y: (y.sin() * x, y.cos()), x, has_aux=True)
    return pull(out)[0] + others


def pulled_for_a_batch(x: Any) -> Any:
    transform: Any = torch.func.vjp
    _, pull = transform(torch.sin, x)
    return torch.func.vmap(pull)(torch.stack([x, x * 2]))[0]


def mapped_in_a_branch(x: Any) -> Any:
    many = torch.func.vmap(lambda row: row.sin() * 2)
    return torch.cond(x.sum() > 0, many, lambda y: y * 3, (x,))


TRANSFORMED = {
    "pulled twice": pulled_twice,
    "pulled with auxiliary results": pulled_with_others,
    "pulled for a batch": pulled_for_a_batch,
    "jacrev": torch.func.jacrev(lambda y: y.sin() * y.sum()),
    "mapped in a branch": mapped_in_a_branch,
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transform_is_exported_as_the_operators_that_it_comes_to(name: str) -> None:
    function, x = TRANSFORMED[name], torch.tensor([0.5, 1.0, -2.0])
    program = stator.export(module_of(function), (x,))
    assert "stator" not in program.graph_module.code
    for given in (x, x + 2, x.exp()):
        torch.testing.assert_close(program.module()(given), function(given))


class Shared(torch.nn.Module):
    """Its two layers share a weight, and it reads the second one first."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor) -> Any:
        return self.b(x) + self.a(x)


class Alias(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = torch.nn.Parameter(torch.ones(3))
        self.q = self.p

    def forward(self, x: torch.Tensor) -> Any:
        return x * self.q


@pytest.mark.parametrize("cls", [Shared, Alias])
def test_shared_parameter_has_the_name_by_which_it_is_read_first(cls: Any) -> None:
    made, x = cls(), torch.ones(2, 3)
    programs = stator.export(made, (x,)), torch.export.export(made, (x,), strict=True)
    ours, theirs = (
        [(spec.kind, spec.arg.name, spec.target) for spec in each.graph_signature.input_specs]
        for each in programs
    )
    assert ours == theirs
    assert torch.equal(programs[0].module()(x), made(x))


LOG = logging.getLogger(__name__)
SHOWN: dict[str, Any] = {
    "print": lambda x: print("seen", x, x.shape, sep=", ", file=sys.stderr),
    "print of an object": lambda x: print(LOG),
    "print of a size": lambda x: print(f"{x.shape[0]} rows"),
    "logging.info": lambda x: logging.info("%s", x),
    "a method of a logger": lambda x: LOG.warning("%s", x),
    "Logger.log": lambda x: LOG.log(logging.ERROR, "seen"),
    "warnings.warn": lambda x: warnings.warn(f"{x.shape}", stacklevel=1),
}


@pytest.mark.parametrize("show", SHOWN.values(), ids=SHOWN)
def test_what_only_shows_something_is_dropped(
    show: Any, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    class Showing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x * 2, show(x)

    program = stator.export(Showing(), (torch.ones(2),))
    theirs = torch.export.export(Showing(), (torch.ones(2),), strict=True)

    assert program.graph_module.code == theirs.graph_module.code
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
