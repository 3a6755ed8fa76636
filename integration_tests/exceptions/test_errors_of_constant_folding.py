"""Errors of functions that are computed while tracing: what they say, hold and are."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import stator
import torch
from torch import Tensor

from integration_tests.support.oracle import assert_same

CASES = r"""
"{0.foo}".format(3)
"{0[foo]}".format(3)
"{5}".format(3)
"{a}".format(3)
"{a}".format_map({})
np.int32(3) + "a"
sum(["a"], start=np.int32(3))
np.float64(3).sum(axis=4)
np.float32(3) << 2
np.int32(3) // "b"
np.int8(300)
"é".encode("ascii")
b"\xff".decode()
int("a")
sorted([1, "a"])
sorted([np.int32(1), "a"])
max([1, "a"])
re.compile("(")
struct.unpack("i", b"a")
"abc".index("z")
(1, 2).index((3, 4))
math.factorial(-1)
pow(2, -1, 4)
"".join([1])
"%d" % "a"
"%(a)s" % {}
json.loads("{")
ast.literal_eval("1 +")
decimal.Decimal("x")
fractions.Fraction(1, 0)
datetime.date(2000, 13, 1)
unicodedata.lookup("nothing")
frozenset([[]])
range(3).index((1, 2))
operator.attrgetter("foo")(3)
bytes.fromhex("zz")
2.0**5000
str(10**5000)
"""

NAMES = "ast datetime decimal fractions json math operator re struct unicodedata".split()
MODULES = {"np": np, **{name: importlib.import_module(name) for name in NAMES}}


def texts(x: Tensor, work: Callable[[], Any]) -> Any:
    try:
        work()
    except Exception as error:
        return x + 1, str(error)


def arguments(x: Tensor, work: Callable[[], Any]) -> Any:
    try:
        work()
    except Exception as error:
        return x + 1, len(error.args), type(error.args[-1])


def attributes(x: Tensor, work: Callable[[], Any]) -> Any:
    try:
        work()
    except Exception as error:
        return x + 1, [
            getattr(error, name, name)
            for name in ("name", "reason", "dtypes", "msg", "axis", "value")
        ]


@pytest.mark.parametrize("mode", [False, "operations"])
@pytest.mark.parametrize("reads", [texts, arguments, attributes], ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("case", CASES.strip().split("\n"))
def test_error_is_what_plain_python_raises(case: str, reads: Any, mode: Any) -> None:
    compiled = stator.compile(reads, backend="eager", options={"break_everywhere": mode})
    work = eval(f"lambda: {case}", MODULES)
    assert_same(reads, compiled, lambda: (torch.ones(2), work), calls=3)
