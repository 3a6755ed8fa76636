"""The standard library as a corpus of bytecode: a spread sample of files by default, every file in
slow shares."""

from __future__ import annotations

import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest
from hypothesis import HealthCheck, settings

# The same examples each time, and no limit on time: machines that run tests are shared, and the
# first draw of a text on a new machine makes a table of Unicode.
settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deterministic")

STDLIB = Path(sysconfig.get_path("stdlib"))
SAMPLES = 24
SHARES = 8


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "stdlib_codes" not in metafunc.fixturenames:
        return
    files = sorted(path for path in STDLIB.rglob("*.py") if "site-packages" not in path.parts)
    small = [path for path in files if path.stat().st_size < 20_000]
    samples = [
        pytest.param([path], id=str(path.relative_to(STDLIB)))
        for path in small[:: len(small) // SAMPLES]
    ]
    shares = [
        pytest.param(files[share::SHARES], id=f"share {share}", marks=[pytest.mark.slow])
        for share in range(SHARES)
    ]
    metafunc.parametrize("stdlib_codes", samples + shares, indirect=True)


@pytest.fixture
def stdlib_codes(request: pytest.FixtureRequest) -> list[CodeType]:
    """Every code object of some files, nested ones too."""
    return [code for path in request.param for code in _codes_of(path)]


def _codes_of(path: Path) -> Iterator[CodeType]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError):  # files that CPython's own tests keep to be wrong
            return
    yield from _nested(code)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
