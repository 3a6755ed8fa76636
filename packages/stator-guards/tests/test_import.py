"""Everything but the tensor kinds works where torch cannot be imported; the public names are the
documented ones."""

from __future__ import annotations

import subprocess
import sys

import stator_guards

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import stator_guards as g
x = g.ParameterSource("x")
shape = g.ShapeExpression("n > 0", {"n": x})
guard_set = g.compile_guards([g.Guard(x, g.Equals(1)), g.Guard(None, shape)], ["x"])
assert guard_set.check(1) and not guard_set.check(True) and guard_set.explain(2)
cache = g.Cache()
cache.insert(g.Entry(guard_set, print))
assert cache.lookup(None, (1,))
exec("from stator_guards import *")
try:
    g.TensorMatch
except ImportError as error:
    assert "stator_guards.TensorMatch" in str(error) and "stator-guards[torch]" in str(error)
    print("works")
"""

NO_DYNAMO = """
import sys, torch, stator_guards as g
x = torch.zeros(2)
guards = [g.Guard(g.ParameterSource("x"), g.TensorMatch(x)), g.Guard(None, g.GlobalState())]
assert g.compile_guards(guards, ["x"]).check(x)
assert "torch._dynamo" not in sys.modules
print("works")
"""


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_everything_else_works_without_torch() -> None:
    assert run(WITHOUT_TORCH) == "works"


def test_tensor_guards_do_not_load_torch_dynamo() -> None:
    import importlib.util

    if importlib.util.find_spec("torch") is not None:
        assert run(NO_DYNAMO) == "works"


def test_public_names_are_listed() -> None:
    public = {name for name in vars(stator_guards) if not name.startswith("_")}
    public -= {"annotations", "TYPE_CHECKING", "errors", "conformance", "conformance_kind"}
    public |= {"DistinctStorages", "GlobalState", "TensorMatch"}
    public |= {"GradientSource", "history_words", "unhooked_words"}
    assert public == set(stator_guards.__all__)
