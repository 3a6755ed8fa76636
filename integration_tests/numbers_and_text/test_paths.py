"""Paths are constants of the region: what `pathlib` computes of them costs no break and no
guard."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

import pytest
import stator
import torch
from torch import Tensor

PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(fn: Callable[..., Any]) -> Callable[..., Any]:
    PROGRAMS[fn.__name__.replace("_", " ")] = fn
    return fn


class Own(PurePosixPath):
    """A path with a method of its own."""

    def shout(self) -> str:
        return str(self).upper()


class Located:
    def __init__(self, where: Any) -> None:
        self.where = where

    def __fspath__(self) -> Any:
        return self.where


@program
def parts(x: Tensor, path: Any) -> Any:
    return x, path.name, path.stem, path.suffix, path.suffixes, path.parts, path.anchor, path.root


@program
def texts(x: Tensor, path: Any) -> Any:
    return x * len(os.fspath(path)), str(path), f"{path!r:>30}", path.as_posix(), bytes(path)


@program
def joined(x: Tensor, path: Any) -> Any:
    return x, path / "c" / "d.e", "z" / path, path.joinpath("q", path), path / PurePath("k")


@program
def changed(x: Tensor, path: Any) -> Any:
    return x, path.with_name("n"), path.with_suffix(".y"), path.with_stem("s"), path.parent.parent


@program
def compared(x: Tensor, path: Any) -> Any:
    other = type(path)("/a/b.txt")
    return x, path == other, path != other, path < type(path)("/z"), path is other, path == "/a"


@program
def above(x: Tensor, path: Any) -> Any:
    return x, [str(each) for each in path.parents], path.is_relative_to("/a"), path.is_absolute()


@program
def relative(x: Tensor, path: Any) -> Any:
    try:
        return x, path.relative_to("/a"), path.match("*.txt")
    except ValueError as error:
        return x, str(error)


@program
def as_keys(x: Tensor, path: Any) -> Any:
    table = {path: 2, path / "more": 3}
    return x * table[type(path)(str(path))], path in table, hash(path) == hash(type(path)(path))


@program
def of_the_library(x: Tensor, path: Any) -> Any:
    return x, os.path.join(path, "z"), os.path.splitext(path), os.path.basename(path)


PATHS = {
    "posix": PurePosixPath("/a/b.txt"),
    "relative": PurePosixPath("a") / "b.tar.gz",
    "windows": PureWindowsPath("C:/a/b.txt"),
    "concrete": Path("/a/b.txt"),
    "own": Own("/a/b.txt"),
}


@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_paths_are_computed_as_by_plain_python(name: str, kind: str) -> None:
    fn, path = PROGRAMS[name], PATHS[kind]
    compiled = stator.compile(fn, backend="eager", fullgraph=kind != "own")
    for _ in range(2):
        wanted, found = fn(torch.ones(2), path), compiled(torch.ones(2), path)
        assert repr(wanted) == repr(found)
        assert wanted[1:] == found[1:]


def test_another_path_is_another_constant() -> None:
    def named(x: Tensor, path: Any) -> Any:
        return x, path.name, type(path)

    compiled = stator.compile(named, backend="eager", fullgraph=True)
    for path in (*PATHS.values(), PureWindowsPath("c:/A/B.TXT"), *PATHS.values()):
        assert compiled(torch.ones(2), path)[1:] == (path.name, type(path))


def test_paths_keep_their_identity() -> None:
    def given(x: Tensor, path: Any, other: Any) -> Any:
        return x, path, path is other, path / "a"

    compiled = stator.compile(given, backend="eager", fullgraph=True)
    first, second = PurePath("a"), PurePath("a")
    for other in (first, second, first):
        found = compiled(torch.ones(2), first, other)
        assert found[1] is first
        assert found[2] is (other is first)
    assert compiled(torch.ones(2), first, first)[3] is not found[3]


@pytest.mark.parametrize("where", ["a", b"a", pathlib.PurePath("a/b"), Located("c"), Located(b"d")])
def test_fspath_gives_the_text(where: Any) -> None:
    def read(x: Tensor, where: Any) -> Any:
        return x, os.fspath(where)

    compiled = stator.compile(read, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2), where)[1] == os.fspath(where)


@pytest.mark.parametrize("where", [3, None, Located(3), Located(Located("a"))])
def test_fspath_refuses_what_is_no_path(where: Any) -> None:
    def read(x: Tensor, where: Any) -> Any:
        try:
            os.fspath(where)
        except TypeError as error:
            return x, str(error)
        return x, ""

    compiled = stator.compile(read, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2), where)[1] == read(torch.ones(2), where)[1] != ""


def test_a_name_with_a_number_is_a_path_of_each_call() -> None:
    def layer(x: Tensor, number: int) -> Any:
        return x * number, pathlib.Path("layers") / f"{number}.pt"

    compiled = stator.compile(layer, backend="eager", fullgraph=True)
    for number in range(5):
        assert compiled(torch.ones(2), number)[1] == pathlib.Path("layers", f"{number}.pt")
