"""Every violation that the layer checks promise to see is planted in a copy of this repository, and
seen."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import check_layers
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

PLANTED = {
    "an undeclared sibling": ("stator-backends", "import stator_guards", "does not declare"),
    "an undeclared sibling inside a function": (
        "stator-bytecode",
        "def f():\n    import stator_guards",
        "does not declare",
    ),
    "an undeclared library": ("stator-guards", "import requests", "does not declare"),
    "a private module": ("stator", "from stator_guards import _cache", "private to stator_guards"),
    "a private name": (
        "stator",
        "from stator_guards._cache import Cache",
        "private to stator_guards",
    ),
    "a private name under TYPE_CHECKING": (
        "stator",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import stator_guards._cache",
        "private to stator_guards",
    ),
    "a private attribute": (
        "stator",
        "import stator_guards as g\ng._cache.Cache",
        "private to stator_guards",
    ),
    "a private module by name": (
        "stator",
        "import importlib\nimportlib.import_module('stator_guards._cache')",
        "private to stator_guards",
    ),
    "torch under the interpreter": ("stator-bytecode", "import torch", "torch-free part"),
    "torch under the torch-free guards": (
        "stator-guards",
        "def f():\n    from torch import Tensor",
        "torch-free part",
    ),
    "the release of torch": (
        "stator-guards",
        "import torch\nNEW = torch.__version__ >= (2, 14)",
        "reads the release of torch",
    ),
    "the release of torch from its module": (
        "stator",
        "from torch.torch_version import TorchVersion",
        "reads the release of torch",
    ),
    "the release of torch by import": (
        "stator-backends",
        "from torch import __version__",
        "reads the release of torch",
    ),
    "Dynamo": ("stator-variables", "import torch._dynamo", "imports torch._dynamo"),
    "Dynamo from torch": ("stator-variables", "from torch import _dynamo", "imports torch._dynamo"),
    "a part of Dynamo": (
        "stator-variables",
        "from torch._dynamo.utils import counters",
        "imports torch._dynamo",
    ),
    "Dynamo by attribute": (
        "stator-variables",
        "import torch\ntorch._dynamo.reset()",
        "imports torch._dynamo",
    ),
    "Dynamo by name": ("stator-backends", "__import__('torch._dynamo')", "imports torch._dynamo"),
    "Dynamo by importlib": (
        "stator-backends",
        "from importlib import import_module\nimport_module('torch._dynamo')",
        "imports torch._dynamo",
    ),
    "Dynamo in generated source": (
        "stator",
        "HEAD = 'import torch\\nimport torch._dynamo\\n'",
        "imports torch._dynamo",
    ),
}


@pytest.fixture
def copy(tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copytree(
        ROOT / "packages", tmp_path / "packages", ignore=shutil.ignore_patterns("__pycache__", ".*")
    )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(root: pathlib.Path, package: str, source: str, name: str = "_planted.py") -> None:
    (root / "packages" / package / "src" / package.replace("-", "_") / name).write_text(
        source + "\n"
    )


def contracts_hold(root: pathlib.Path) -> bool:
    """What ``lint-imports`` says of the packages below ``root``."""
    sources = os.pathsep.join(str(path) for path in root.glob("packages/*/src"))
    command = [str(pathlib.Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts" in done.stdout, done.stdout + done.stderr
    return done.returncode == 0


def test_this_repository_has_no_faults() -> None:
    assert check_layers.faults(ROOT) == []


@pytest.mark.parametrize("title", PLANTED)
def test_planted_violation_is_seen(copy: pathlib.Path, title: str) -> None:
    package, source, expected = PLANTED[title]
    plant(copy, package, source)
    seen = [fault for fault in check_layers.faults(copy) if "_planted.py" in fault]
    assert any(expected in fault for fault in seen), seen


def test_shipped_tensor_guards_may_know_torch(copy: pathlib.Path) -> None:
    plant(copy, "stator-guards", "import torch", "_tensor_planted.py")
    assert not [fault for fault in check_layers.faults(copy) if "torch-free" in fault]


def test_dynamo_in_a_docstring_is_no_import(copy: pathlib.Path) -> None:
    plant(copy, "stator", '"""Users write\n\n    import torch._dynamo\n"""')
    assert not [fault for fault in check_layers.faults(copy) if "_planted.py" in fault]


def test_package_missing_from_the_contracts_is_seen(copy: pathlib.Path) -> None:
    (copy / "packages" / "stator-extra" / "src" / "stator_extra").mkdir(parents=True)
    manifest = '[project]\nname = "stator-extra"\ndependencies = []\n'
    (copy / "packages" / "stator-extra" / "pyproject.toml").write_text(manifest)
    assert any("stator_extra is on disk" in fault for fault in check_layers.faults(copy))


def test_dependency_nobody_imports_is_seen(copy: pathlib.Path) -> None:
    path = copy / "packages" / "stator-bytecode" / "pyproject.toml"
    path.write_text(path.read_text().replace('"attrs>=23.2",', '"attrs>=23.2", "requests",'))
    assert any(
        "declares requests but never imports it" in fault for fault in check_layers.faults(copy)
    )


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("__all__ = ['a']\na = extra = 1", True),
        ("__all__ = ['a', 'missing']\na = 1", True),
        ("__all__ = ['a']\nfrom stator_guards._cache import a, b", True),
        ("a = 1", True),
        ("__all__ = ['a']\na = _b = 1", False),
        ("", False),
    ],
)
def test_all_that_differs_from_the_public_names_is_seen(
    copy: pathlib.Path, source: str, seen: bool
) -> None:
    plant(copy, "stator-guards", source, "__init__.py")
    assert any("stator_guards/__init__.py" in fault for fault in check_layers.faults(copy)) is seen


def test_contracts_hold_here_and_fail_for_each_upward_import(copy: pathlib.Path) -> None:
    assert contracts_hold(copy)
    for package, source in (
        ("stator-bytecode", "import stator_guards"),
        ("stator-guards", "def f():\n    import stator_variables"),
        (
            "stator-variables",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import stator",
        ),
        ("stator-subgraphs", "import stator_backends"),
        ("stator-backends", "import stator_variables"),
        ("stator-bytecode", "import torch"),
    ):
        plant(copy, package, source)
        assert not contracts_hold(copy), f"{package}: {source}"
        plant(copy, package, "")
