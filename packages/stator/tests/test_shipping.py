"""Files of `save`: loading traces nothing, and whatever differs is an error that names it."""

from __future__ import annotations

import hashlib
import hmac
import os
import pathlib
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
import stator
import torch

NAME = "program_of_shipping"
PROGRAM = """
import stator
import torch

SCALE = 2.0


def shifted(x, k=1.5):
    return x * SCALE + k


def breaks(x, n=2):
    y = shifted(x)
    stator.graph_break()
    return y.sin() * n


def skips(x):
    y = shifted(x)
    stator.graph_break()
    stator.skip_frame()
    return y + 1


@torch.compiler.disable(recursive=False)
def native(x):
    return shifted(x) + 1


def calls_native(x):
    return native(x * 2) - 1


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.factor = 2

    def forward(self, x):
        return shifted(self.fc(x) * self.factor).relu()


class Other(Model):
    def forward(self, x):
        return self.fc(x)
"""
X = torch.linspace(-1.0, 1.0, 8).reshape(2, 4)
KEY = bytes(range(32))


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("STATOR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def program() -> Iterator[Any]:
    yield imported(PROGRAM)
    sys.modules.pop(NAME, None)


def imported(text: str) -> Any:
    """Import a program under the name that all of them have."""
    module = types.ModuleType(NAME)
    sys.modules[NAME] = module
    exec(compile(text, f"{NAME}.py", "exec"), vars(module))
    return module


def model_of(module: Any, cls: str = "Model") -> Any:
    torch.manual_seed(0)
    return getattr(module, cls)().eval()


def saved(fn: Any, path: pathlib.Path, *calls: tuple[Any, ...], **settings: Any) -> pathlib.Path:
    """Compile, call and save; then forget all of it, with the cache, as another machine would."""
    key = settings.pop("key", KEY)
    options = {"cache": True, **settings.pop("options", {})}
    compiled = stator.compile(fn, **{"backend": "eager", "options": options, **settings})
    for call in calls:
        compiled(*call)
    stator.save(compiled, path, key=key)
    stator.reset()
    return path


# -- what is in a file -----------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ["shifted", "breaks"])
def test_function_with_breaks_is_loaded_without_a_trace(
    name: str, backend: str, program: Any, folder: pathlib.Path, traces: list[int]
) -> None:
    fn = getattr(program, name)
    path = saved(fn, folder / "fn.stator", (X,), (X[0],), (X.double(),), backend=backend)
    assert traces
    traces.clear()
    loaded = stator.load(path, fn, key=KEY)
    for x in (X, X[0], X.double(), X):
        assert torch.equal(loaded(x), fn(x))
    assert not traces


def test_calls_of_changing_sizes_and_numbers(
    program: Any, folder: pathlib.Path, traces: list[int]
) -> None:
    calls = [(X[:, :size], n) for size, n in ((2, 2), (3, 2), (4, 5), (3, 7))]
    path = saved(program.breaks, folder / "fn.stator", *calls)
    traces.clear()
    for each in (calls, reversed(calls)):
        loaded = stator.load(path, program.breaks, key=KEY)
        for call in each:
            assert torch.equal(loaded(*call), program.breaks(*call))
        assert not traces
        stator.reset()


def test_weights_are_those_of_the_target_and_learn(
    program: Any, folder: pathlib.Path, traces: list[int]
) -> None:
    path = saved(model_of(program), folder / "model.stator", (X,), backend="aot_eager")
    traces.clear()
    torch.manual_seed(1)
    target = program.Model().eval()
    loaded = stator.load(path, target, key=KEY)
    assert torch.equal(loaded(X), target(X))
    loaded(X).sum().backward()
    assert target.fc.weight.grad.abs().sum() > 0
    assert not traces


def test_loaded_object_can_be_saved_again(program: Any, folder: pathlib.Path) -> None:
    path = saved(program.breaks, folder / "one.stator", (X,))
    loaded = stator.load(path, program.breaks, key=KEY)
    loaded(X)
    stator.save(loaded, folder / "two.stator")
    again = stator.load(folder / "two.stator", program.breaks)
    assert torch.equal(again(X), program.breaks(X))


def test_several_objects_are_a_folder(program: Any, folder: pathlib.Path) -> None:
    targets = {"shifted": program.shifted, "model": model_of(program)}
    options = {"cache": True}
    made = {
        name: stator.compile(each, backend="eager", options=options)
        for name, each in targets.items()
    }
    for each in made.values():
        each(X)
    stator.save(made, folder / "all", key=KEY)
    assert {path.name for path in (folder / "all").iterdir()} == {"shifted.stator", "model.stator"}
    stator.reset()
    for name, each in stator.load(folder / "all", targets, key=KEY).items():
        assert torch.equal(each(X), targets[name](X))


# -- what does not fit -----------------------------------------------------------------------------
CHANGES = {
    "source of the model": ("self.fc(x) * self.factor", "self.fc(x) - self.factor", "forward"),
    "source of a helper": ("x * SCALE + k", "x / SCALE + k", "the code of shifted has changed"),
    "global": ("SCALE = 2.0", "SCALE = 3.0", "SCALE"),
    "default": ("k=1.5", "k=2.5", "shifted"),
    "attribute of the model": ("self.factor = 2", "self.factor = 3", "factor"),
    "size of a weight": ("torch.nn.Linear(4, 4)", "torch.nn.Linear(4, 5)", "weight"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_of_the_program_is_named(change: str, program: Any, folder: pathlib.Path) -> None:
    path = saved(model_of(program), folder / "model.stator", (X,))
    before, after, text = CHANGES[change]
    target = model_of(imported(PROGRAM.replace(before, after)))
    with pytest.raises(stator.InvalidUse, match=f"model.stator .*{text}"):
        stator.load(path, target, key=KEY)(X)
    with pytest.raises(stator.InvalidUse, match=f"model.stator .*{text}"):
        stator.load(path, target, key=KEY)(X)


def _torch_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("stator._disk_cache._fingerprint.BUILD", "9.9 of yesterday")


def _python_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "version", "3.99")


def _own_content(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("stator._shipping._load.content_of_packages", lambda: "other")


def _limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("torch._dynamo.config.accumulated_recompile_limit", 99)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_torch_version, "torch was .* and is 9.9 of yesterday"),
        (_python_version, "Python was .* and is .*3.99"),
        (_own_content, "the files of stator are others"),
        (_limit, "option total_limit was 64 and is 99"),
    ],
)
def test_other_versions_and_settings_are_named(
    change: Callable[[pytest.MonkeyPatch], None],
    text: str,
    program: Any,
    folder: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = saved(program.shifted, folder / "fn.stator", (X,))
    change(monkeypatch)
    with pytest.raises(stator.InvalidUse, match=f"fn.stator does not fit: {text}"):
        stator.load(path, program.shifted, key=KEY)


def test_other_object_is_named(program: Any, folder: pathlib.Path) -> None:
    path = saved(model_of(program), folder / "model.stator", (X,))
    with pytest.raises(stator.InvalidUse, match=r"saved for Model.forward, not for Other.forward"):
        stator.load(path, model_of(program, "Other"), key=KEY)


def test_other_arguments_and_modes_of_a_call_are_named(program: Any, folder: pathlib.Path) -> None:
    loaded = stator.load(
        saved(program.shifted, folder / "fn.stator", (X,)), program.shifted, key=KEY
    )
    with pytest.raises(stator.InvalidUse, match="no call with such arguments was saved"):
        loaded(X.double())
    with torch.no_grad(), pytest.raises(stator.InvalidUse, match="grad_mode was True and is False"):
        loaded(X)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        with pytest.raises(stator.InvalidUse, match=f"num_threads was {threads} and is"):
            loaded(X)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(loaded(X), program.shifted(X))


def test_call_without_an_entry_is_compiled_on_request(program: Any, folder: pathlib.Path) -> None:
    path = saved(program.shifted, folder / "fn.stator", (X,))
    loaded = stator.load(path, program.shifted, key=KEY, recompile=True)
    assert torch.equal(loaded(X), program.shifted(X))
    with pytest.warns(UserWarning, match="it is compiled afresh"):
        assert torch.equal(loaded(X.double()), program.shifted(X.double()))
    assert loaded.report.entry_count == 2


# -- what cannot be saved --------------------------------------------------------------------------
def test_object_that_cannot_be_saved_is_refused_with_the_reason(
    program: Any, folder: pathlib.Path
) -> None:
    path = folder / "fn.stator"
    plain = stator.compile(program.shifted, backend="eager")
    plain(X)
    with pytest.raises(stator.InvalidUse, match="the traces of shifted were not kept"):
        stator.save(plain, path)
    uncalled = stator.compile(program.shifted, backend="eager", options={"cache": True})
    with pytest.raises(stator.InvalidUse, match="nothing was compiled for shifted"):
        stator.save(uncalled, path)
    with pytest.raises(stator.InvalidUse, match="it makes generators"):
        saved(lambda x: (x for _ in range(3)), path, (X,))
    with pytest.raises(stator.InvalidUse, match=r"no path leads to .*Callees"):
        saved(program.calls_native, path, (X,))
    with pytest.raises(stator.InvalidUse, match="not compiled by stator"):
        stator.save(len, path)
    assert not path.exists()


def test_calls_that_run_plainly_do_so_after_loading(program: Any, folder: pathlib.Path) -> None:
    fn = program.skips
    path = saved(fn, folder / "fn.stator", (X,), (X,))
    loaded = stator.load(path, fn, key=KEY)
    for _ in range(3):
        assert torch.equal(loaded(X), fn(X))
    assert loaded.report.entry_count == 1


# -- keys ------------------------------------------------------------------------------------------
def test_each_changed_byte_is_refused(program: Any, folder: pathlib.Path) -> None:
    path = saved(program.shifted, folder / "fn.stator", (X,))
    whole = path.read_bytes()
    for number in range(60):
        content = bytearray(whole)
        content[number * len(whole) // 60] ^= 1 + number
        path.write_bytes(content)
        with pytest.raises(stator.StatorError, match=r"it is not read|is no file of stator.save"):
            stator.load(path, program.shifted, key=KEY)
    path.write_bytes(whole[:10])
    with pytest.raises(stator.StatorError, match=r"is no file of stator.save"):
        stator.load(path, program.shifted, key=KEY)


def test_file_under_another_key_is_refused(program: Any, folder: pathlib.Path) -> None:
    path = saved(program.shifted, folder / "fn.stator", (X,))
    for key in (None, b"another secret of 32 bytes ......"):
        with pytest.raises(stator.StatorError, match="signed with another key"):
            stator.load(path, program.shifted, key=key)
    with pytest.raises(stator.InvalidUse, match="too short"):
        stator.load(path, program.shifted, key=b"short")
    with pytest.raises(stator.InvalidUse, match="a int verifies nothing"):
        stator.load(path, program.shifted, key=3)  # type: ignore[arg-type]
    with pytest.raises(stator.InvalidUse, match="there is no file"):
        stator.load(folder / "none", program.shifted)


@attrs.frozen
class PublicKey:
    """A key that verifies as those of public-key libraries do."""

    secret: bytes
    answer: object = None

    def verify(self, signature: bytes, data: bytes) -> object:
        if not hmac.compare_digest(signature, hashlib.sha512(self.secret + data).digest()):
            if self.answer is not None:
                return self.answer
            raise ArithmeticError("wrong signature")
        return None


@attrs.frozen
class PrivateKey:
    """A key that signs as those of public-key libraries do."""

    secret: bytes

    def sign(self, data: bytes) -> bytes:
        return hashlib.sha512(self.secret + data).digest()


def test_keys_of_public_key_libraries_sign_and_verify(program: Any, folder: pathlib.Path) -> None:
    path = saved(program.shifted, folder / "fn.stator", (X,), key=PrivateKey(b"a"))
    assert torch.equal(
        stator.load(path, program.shifted, key=PublicKey(b"a"))(X), program.shifted(X)
    )
    for key in (PublicKey(b"b"), PublicKey(b"b", answer=False), KEY, None):
        with pytest.raises(stator.StatorError, match="signed with another key"):
            stator.load(path, program.shifted, key=key)


def test_folder_of_a_dump_is_not_loaded_for_a_target(program: Any, folder: pathlib.Path) -> None:
    compiled = stator.compile(program.shifted, backend="eager")
    compiled(X)
    dumped = stator.dump(compiled, folder / "dump")
    assert torch.equal(stator.load(dumped)(X), program.shifted(X))
    with pytest.raises(stator.InvalidUse, match="there is no file"):
        stator.load(dumped, program.shifted)


SCRIPT = f"""
import sys
import stator, torch
from stator_bytecode import Machine

runs = []
plain = Machine.run
Machine.run = lambda self, frames: runs.append(1) or plain(self, frames)
{PROGRAM}
torch.manual_seed(0)
model, x = Model(), torch.ones(2, 4)
if sys.argv[1] == "save":
    compiled = stator.compile(model, options={{"cache": True}})
else:
    compiled = stator.load("model.stator", model, key=bytes(32))
for size in (2, 3, 5):
    x = torch.ones(size, 4)
    torch.testing.assert_close(compiled(x), model(x))
    compiled(x).sum().backward()
if sys.argv[1] == "save":
    stator.save(compiled, "model.stator", key=bytes(32))
counters = sys.modules["torch._dynamo.utils"].counters
print(len(runs), counters["inductor"]["fxgraph_cache_miss"])
"""


@pytest.mark.slow
def test_file_has_all_for_a_process_with_empty_caches(folder: pathlib.Path) -> None:
    (folder / "program.py").write_text(SCRIPT)
    found = {}
    for step in ("save", "load"):
        environment = {
            **os.environ,
            "STATOR_CACHE_DIR": str(folder / step),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / f"{step}-inductor"),
        }
        done = subprocess.run(
            [sys.executable, "program.py", step],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found[step] = [int(word) for word in done.stdout.split()]
    assert min(found["save"]) > 0
    assert found["load"] == [0, 0]
