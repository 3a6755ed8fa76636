"""The division of modules into the kernel, captures and what only these use."""

from __future__ import annotations

import pathlib

import captures
from package_source import count_nodes, read_packages

ROOT = pathlib.Path(__file__).resolve().parents[2]

FILES = {
    "__init__": "from stator_variables import _registry, _space\n",
    "_registry": "from stator_variables._library import _alone\nfrom stator_variables import _list\n",
    "_space": "def used(): pass\n",
    "_list": "from stator_variables import _space\nbuilders = 1\n\n@methods.handles(1)\ndef append(): pass\n",
    "_library/__init__": "",
    "_library/_alone": "from stator_variables import _applevel, _space\n"
    "@handlers.handles(1)\ndef fold(): pass\n",
    "_applevel": "def in_python(): pass\n",
}


def divided(root: pathlib.Path) -> captures.Division:
    folder = root / "packages" / "stator-variables" / "src" / "stator_variables"
    for name, text in FILES.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return captures.divide(root)


def test_modules_are_divided_by_what_reaches_them(tmp_path: pathlib.Path) -> None:
    division = divided(tmp_path)
    outside = division.modules.keys() - division.kernel - captures.LISTS
    assert outside == {"stator_variables._library._alone", "stator_variables._applevel"}
    assert list(division.captures) == ["library.alone", "list"]


def test_only_handlers_count_in_a_module_of_the_kernel(tmp_path: pathlib.Path) -> None:
    division = divided(tmp_path)
    alone, in_kernel = division.captures["library.alone"], division.captures["list"]
    assert division.nodes_of(alone) == alone.nodes
    assert 0 < division.nodes_of(in_kernel) == in_kernel.of_handlers < in_kernel.nodes


def test_module_of_the_kernel_with_handlers_is_a_fault(tmp_path: pathlib.Path) -> None:
    assert divided(tmp_path).mixed == ["stator_variables._list"]
    assert captures.divide(ROOT).mixed == []


def test_sizes_add_up_to_the_nodes_of_each_package() -> None:
    division = captures.divide(ROOT)
    for package, sources in read_packages(ROOT).items():
        nodes = sum(count_nodes(source.tree) for source in sources)
        assert sum(division.sizes(package)) == nodes
        assert min(division.sizes(package)) >= 0


def test_names_are_those_of_the_package() -> None:
    named = captures.divide(ROOT).captures
    assert {
        "library.random.python",
        "objects.list_methods",
        "operators.cond",
        "builtin.values",
    } <= named.keys()
