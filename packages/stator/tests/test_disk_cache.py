"""The cache on disk: what was traced is taken from a file later, and whatever differs is noticed.

`stator.reset()` stands for the end of the process in all tests but the slow ones.
"""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import stator
import torch
from stator._disk_cache import _process_lock
from stator._disk_cache._fingerprint import of_arguments
from stator._disk_cache._process_lock import ProcessLock
from stator._disk_cache._store import Refused, Store
from torch.compiler._cache import CacheArtifactManager
from torch.overrides import TorchFunctionMode

NAME = "program_of_disk_cache"
PROGRAM = """
import os
import torch

SCALE = 2.0
FLAGS = {"mode": 1}


class Config:
    width = 3


CONFIG = Config()


def shifted(x, k=1.5):
    return x * SCALE + k


def adding(n):
    return lambda x: x + n


ADD = adding(1)


class Model(torch.nn.Module):
    bias = 0.5

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.drop = torch.nn.Dropout(0.5)
        self.factor = 2

    @property
    def offset(self):
        return 7

    def scaled(self, x):
        return x * self.factor

    def forward(self, x):
        y = shifted(self.scaled(self.fc(x))) + self.bias + CONFIG.width + self.offset
        if FLAGS["mode"] == 1:
            y = y.sin()
        return self.drop(ADD(y)) * int(os.environ.get("PROGRAM_LEVEL", "1"))
"""
X = torch.linspace(-1.0, 1.0, 8).reshape(2, 4)
OPTIONS = {"cache": True}
FROM_CACHE = "from the cache"


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("STATOR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def program() -> Any:
    yield imported(PROGRAM)
    sys.modules.pop(NAME, None)


def imported(text: str) -> Any:
    """Import a program under the name that all of them have."""
    module = types.ModuleType(NAME)
    sys.modules[NAME] = module
    exec(compile(text, f"{NAME}.py", "exec"), vars(module))
    return module


def model_of(module: Any) -> Any:
    torch.manual_seed(0)
    return module.Model().eval()


def notes(compiled: Any) -> list[str]:
    entries = compiled.report.data()["entries"]
    return [note for entry in entries for note in entry["cache"]]


def run(fn: Any, *args: Any, backend: str = "eager", **options: Any) -> tuple[Any, list[str]]:
    """Compile as a new process would, and call; return the result and the notes of the entry."""
    stator.reset()
    compiled = stator.compile(fn, backend=backend, options=OPTIONS | options)
    return compiled(*args), notes(compiled)


# -- what is taken from a file ---------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_second_process_takes_the_entry_of_the_first(program: Any, backend: str) -> None:
    model = model_of(program)
    first, written = run(model, X, backend=backend)
    assert written == ["written to the cache"]
    second, found = run(model_of(program), X, backend=backend)
    assert found == [FROM_CACHE]
    assert torch.equal(first, second)
    assert torch.equal(second, model(X))


def test_gradients_and_writes_are_those_of_the_program(program: Any) -> None:
    class Counting(program.Model):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            self.log.append(x.shape[0])
            x.mul_(2)
            return super().forward(x), self.log

    program.Counting, Counting.__module__ = Counting, NAME
    Counting.__qualname__ = "Counting"
    seen = []
    for _ in range(2):
        torch.manual_seed(0)
        model, given = Counting().eval(), X.clone()
        model.log = []
        (result, log), found = run(model, given)
        result.sum().backward()
        assert log is model.log
        seen.append((result.tolist(), given.tolist(), log, model.fc.weight.grad.tolist(), found))
    assert seen[0][:4] == seen[1][:4]
    assert [each[4] for each in seen] == [["written to the cache"], [FROM_CACHE]]


def test_entry_from_a_file_serves_only_calls_for_which_its_guards_hold(program: Any) -> None:
    model = model_of(program)
    run(model, X)
    stator.reset()
    compiled = stator.compile(model, backend="eager", options=OPTIONS)
    for x in (X, X[:1], X[:1], X.double().float(), X):
        assert torch.equal(compiled(x), model(x))
    model.factor = 5
    assert torch.equal(compiled(X), model(X))


def test_error_in_a_graph_from_a_file_is_that_of_the_program(program: Any) -> None:
    def taken(x: Any, index: Any) -> Any:
        return x.sin()[index]

    run(taken, X, torch.tensor([0]))
    stator.reset()
    compiled = stator.compile(taken, backend="eager", options=OPTIONS)
    for fn in (taken, compiled):
        with pytest.raises(IndexError, match="out of bounds"):
            fn(X, torch.tensor([9]))
    assert notes(compiled) == [FROM_CACHE]


class Heard(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kw: Any = None) -> Any:
        self.names.append(function.__name__)
        return function(*args, **(kw or {}))


def makes_and_adds(x: Any) -> Any:
    return torch.ones(2, 4) + x.sin()


@pytest.mark.parametrize("mode", [Heard, lambda: torch.device("cpu")])
def test_file_of_a_call_without_a_mode_is_not_read_under_one(mode: Any) -> None:
    run(makes_and_adds, X)
    under, plain, found = mode(), mode(), []
    stator.reset()
    compiled = stator.compile(makes_and_adds, backend="eager", options=OPTIONS)
    for one, fn in ((under, compiled), (plain, makes_and_adds)):
        with one:
            found.append(fn(X))
    assert torch.equal(*found)
    assert getattr(under, "names", None) == getattr(plain, "names", None)
    assert FROM_CACHE not in notes(compiled)


def turns_and_reads(x: Any, index: Any) -> Any:
    try:
        x.t_()
        return x[index] + 1
    except IndexError:
        return x * 2


def adds_a_dimension_and_reads(x: Any, index: Any) -> Any:
    try:
        x.unsqueeze_(0)
        return x[index].sin()
    except IndexError:
        return x.cos()


@pytest.mark.parametrize("fn", [turns_and_reads, adds_a_dimension_and_reads])
def test_error_behind_a_change_of_layout_is_handled_by_an_entry_from_a_file(fn: Any) -> None:
    for expected in ("written to the cache", FROM_CACHE):
        stator.reset()
        compiled = stator.compile(fn, backend="eager", options=OPTIONS)
        for last in (0, 9):
            index, x, y = torch.tensor([0, last]), X.clone(), X.clone()
            assert torch.equal(compiled(x, index), fn(y, index))
            assert (x.shape, x.stride()) == (y.shape, y.stride())
        assert notes(compiled)[0] == expected


def test_closure_of_another_function_with_equal_code_is_guarded(program: Any) -> None:
    run(program.adding(1), X)
    _, found = run(program.adding(1), X)
    assert found == [FROM_CACHE]
    result, others = run(program.adding(2), X)
    assert torch.equal(result, X + 2)
    assert FROM_CACHE not in others


def test_nothing_is_written_without_the_option(program: Any, folder: pathlib.Path) -> None:
    compiled = stator.compile(model_of(program), backend="eager")
    compiled(X)
    assert not folder.exists()
    assert notes(compiled) == []


# -- what is not written ---------------------------------------------------------------------------
def makes_generators(x: Any) -> Any:
    return (x * n for n in range(3))


def infers(x: Any) -> Any:
    with torch.inference_mode():
        return x + 1


def iterates(x: Any) -> Any:
    for name in {"sin", "cos", "exp"}:  # noqa: PLC0208  # its order is that of the process
        x = getattr(torch, name)(x)
    return x


def hashes(x: Any) -> Any:
    return x * (hash("a") % 7)


hash_of = hash


def hashes_by_another_name(x: Any) -> Any:
    return x * (hash_of(None) % 7)


ANSWERS = [3]


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def answer() -> int:
    return ANSWERS[0]


def asks(x: Any) -> Any:
    return x + answer()


@pytest.mark.parametrize(
    ("fn", "reason"),
    [
        (makes_generators, "it makes generators"),
        (infers, "inference mode"),
        (iterates, "iterates may read hashes"),
        (hashes, "it computes hashes"),
        (hashes_by_another_name, "it computes hashes"),
        (asks, "assumed to be constant"),
    ],
)
def test_trace_that_a_file_cannot_hold_is_not_written(
    fn: Any, reason: str, folder: pathlib.Path
) -> None:
    _, found = run(fn, X)
    assert reason in found[0]
    assert not list(folder.glob("*/*.entry"))


def makes_a_lazy_module(x: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.LazyLinear(2)(x).sin() + x.sum()


class Renamed(torch.Tensor):
    """A tensor whose properties are code of the program."""

    read: ClassVar[list[str]] = []

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        self.read.append("requires_grad")
        return False


def test_tensor_without_sizes_in_a_break_is_no_error() -> None:
    for _ in range(2):
        result, _ = run(makes_a_lazy_module, X)
        assert torch.equal(result, makes_a_lazy_module(X))


def test_properties_of_tensors_are_read_without_code_of_their_class() -> None:
    names = of_arguments([X.as_subclass(Renamed)]), of_arguments([X])
    assert Renamed.read == []
    assert names[0] != names[1]


def test_backend_of_the_program_is_not_cached(folder: pathlib.Path) -> None:
    def own(gm: Any, inputs: Any) -> Any:
        return gm.forward

    stator.reset()
    compiled = stator.compile(lambda x: x + 1, backend=own, options=OPTIONS)
    compiled(X)
    assert "none of stator's own" in notes(compiled)[0]


# -- what has changed ------------------------------------------------------------------------------
CHANGES = {
    "model": ("self.scaled(self.fc(x))", "self.scaled(self.fc(x) + 1)"),
    "method": ("x * self.factor", "x - self.factor"),
    "helper": ("x * SCALE + k", "x / SCALE + k"),
    "global": ("SCALE = 2.0", "SCALE = 3.0"),
    "default": ("k=1.5", "k=2.5"),
    "class attribute": ("bias = 0.5", "bias = 0.25"),
    "attribute of an object": ("width = 3", "width = 4"),
    "attribute of the model": ("self.factor = 2", "self.factor = 3"),
    "property": ("return 7", "return 8"),
    "item of a dict": ('"mode": 1', '"mode": 2'),
    "cell": ("ADD = adding(1)", "ADD = adding(2)"),
    "code of a closure": ("lambda x: x + n", "lambda x: x - n"),
    "other module": ("torch.nn.Linear(4, 4)", "torch.nn.Linear(4, 4, bias=False)"),
    "other class": ("class Config:\n", "class Config(dict):\n"),
    "new attribute": ("    bias = 0.5\n", "    bias = 0.5\n    __call__ = lambda self, x: x\n"),
    "operator": ("y = y.sin()", "y = y.cos()"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_of_the_program_is_noticed(change: str, program: Any) -> None:
    run(model_of(program), X)
    before, after = CHANGES[change]
    assert before in PROGRAM
    changed = model_of(imported(PROGRAM.replace(before, after)))
    result, found = run(changed, X)
    assert torch.equal(result, changed(X))
    assert FROM_CACHE not in found or change == "other class"


def _train(model: Any) -> None:
    model.train()


def _hook(model: Any) -> None:
    model.fc.register_forward_hook(lambda module, args, result: result + 1)


def _shadow(model: Any) -> None:
    model.scaled = torch.sin


def _share(model: Any) -> None:
    model.fc.bias = torch.nn.Parameter(model.fc.weight[0])


@pytest.mark.parametrize("change", [_train, _hook, _shadow, _share])
def test_change_of_the_model_is_noticed(change: Callable[[Any], None], program: Any) -> None:
    run(model_of(program), X)
    changed = model_of(program)
    change(changed)
    torch.manual_seed(1)
    result, _ = run(changed, X)
    torch.manual_seed(1)
    assert torch.equal(result, changed(X))


def _of_environment(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("PROGRAM_LEVEL", "3")


def _of_torch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("stator._disk_cache._fingerprint.BUILD", "9.9 of yesterday")


def _of_python(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "version", "3.99")


def _of_machine(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(torch._C, "_get_cpu_capability", lambda: "SVE512")


def _of_stator(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("stator._disk_cache._fingerprint._own_files", lambda: "edited")


def _of_plugins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("stator._disk_cache._fingerprint._plugins", lambda: "another one")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (_of_environment, None),
        (_of_torch, "torch"),
        (_of_python, "Python"),
        (_of_machine, "machine"),
        (_of_stator, "stator"),
        (_of_plugins, "plugins"),
    ],
)
def test_change_of_the_process_is_noticed(
    change: Callable[[pytest.MonkeyPatch], None],
    part: str | None,
    program: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(model_of(program), X)
    change(monkeypatch)
    model = model_of(program)
    result, found = run(model, X)
    assert torch.equal(result, model(X))
    assert FROM_CACHE not in found
    if part is not None:
        assert f"the latest one in: {part}" in found[0]


def test_change_of_options_modes_and_arguments_is_named(program: Any) -> None:
    model = model_of(program)
    run(model, X)
    _, by_option = run(model, X, keep_text=False)
    _, by_backend = run(model, X, backend="aot_eager")
    with torch.no_grad():
        _, by_mode = run(model, X)
    _, by_size = run(model, X[:1])
    assert "option keep_text" in by_option[0]
    assert "backend" in by_backend[0]
    assert "state of the process" in by_mode[0]
    assert "arguments" in by_size[0]


# -- files -----------------------------------------------------------------------------------------
def test_changed_file_is_refused_and_named(program: Any, folder: pathlib.Path) -> None:
    model = model_of(program)
    run(model, X)
    (path,) = folder.glob("*/*.entry")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="was changed, or written under another key"):
        result, found = run(model, X)
    assert torch.equal(result, model(X))
    assert "it is not read" in found[0]
    assert run(model, X)[1] == [FROM_CACHE]  # it was written anew


def test_key_that_others_can_read_is_refused(program: Any, folder: pathlib.Path) -> None:
    model = model_of(program)
    run(model, X)
    (folder / "key").chmod(0o644)
    with pytest.warns(UserWarning, match="can be read by others"):
        _, found = run(model, X)
    assert "remove that folder" in found[0]


def test_key_can_be_read_by_the_user_alone(folder: pathlib.Path) -> None:
    Store.of(folder)
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_each_of_200_corruptions_is_refused(folder: pathlib.Path) -> None:
    store = Store.of(folder)
    store.write("place", "name", bytes(range(256)))
    (path,) = folder.glob("*/*.entry")
    whole = path.read_bytes()
    for number in range(200):
        content = bytearray(whole)
        content[number * len(whole) // 200] ^= 1 + number % 255
        path.write_bytes(content)
        with pytest.raises(Refused):
            store.read("place", "name")
    for length in (0, 1, 20, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(Refused):
            store.read("place", "name")
    path.write_bytes(whole)
    assert store.read("place", "name") == bytes(range(256))


def test_file_with_another_code_guard_graph_or_table_is_refused(
    program: Any, folder: pathlib.Path
) -> None:
    run(model_of(program), X)
    (path,) = folder.glob("*/*.entry")
    content, store = path.read_bytes(), Store.of(folder)
    for part in (b"forward", b"stator_guards", b"GraphCalls", b"EntryText", b"LiveObject"):
        assert part in content
        path.write_bytes(content.replace(part, part.swapcase(), 1))
        with pytest.raises(Refused, match="was changed"):
            store.read(path.parent.name, path.stem)


def test_file_under_another_name_place_or_key_is_refused(tmp_path: pathlib.Path) -> None:
    one, other = Store.of(tmp_path / "one"), Store.of(tmp_path / "other")
    one.write("place", "name", b"data")
    content = (tmp_path / "one" / "place" / "name.entry").read_bytes()
    for store, place, name in (
        (one, "place", "other"),
        (one, "else", "name"),
        (other, "place", "name"),
    ):
        store.write(place, name, b"")
        (store.folder / place / f"{name}.entry").write_bytes(content)
        with pytest.raises(Refused, match="under another key"):
            store.read(place, name)


def test_what_killed_processes_were_writing_is_removed_later(folder: pathlib.Path) -> None:
    store = Store.of(folder)
    store.write("place", "name", b"data")
    others = [folder / "place" / ".writing-old", folder / ".key-old"]
    recent = folder / "place" / ".writing-new"
    for path in (*others, recent):
        path.write_bytes(b"half")
    for path in others:
        os.utime(path, (1, 1))
    store.write("place", "other", b"data")
    assert recent.exists()
    assert not any(path.exists() for path in others)
    assert sorted(store.names("place")) == ["name", "other"]


WRITER = """
import pathlib, sys
from stator._disk_cache._store import Store

folder = pathlib.Path(sys.argv[1])
store = Store(folder, Store.of(folder).key, limit=20_000)
for number in range(60):
    name = f"{sys.argv[2]}-{number}"
    store.write("place", name, name.encode() * 200)
    for other in store.names("place")[:3]:
        try:
            data = store.read("place", other)
        except FileNotFoundError:  # another process has removed it
            continue
        assert data == other.encode() * 200
        store.use("place", other)
"""


@pytest.mark.slow
def test_several_processes_keep_one_folder_small(folder: pathlib.Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(number)])
        for number in range(3)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    store = Store.of(folder)
    names = store.names("place")
    assert sum(path.stat().st_size for path in folder.glob("*/*.entry")) <= 20_000
    assert len(names) > 10
    assert all(store.read("place", name) == name.encode() * 200 for name in names)
    assert not [*folder.glob("*/.writing-*")]


def test_files_unused_for_the_longest_time_go_first(folder: pathlib.Path) -> None:
    store = Store(folder, Store.of(folder).key, limit=3000)
    for number, name in enumerate(("a", "b", "c")):
        store.write("place", name, bytes(1000) if name != "c" else bytes(900))
        path = folder / "place" / f"{name}.entry"
        if path.exists():
            os.utime(path, (number, number))
    assert sorted(store.names("place")) == ["b", "c"]
    store.use("place", "b")
    store.write("place", "d", bytes(1100))
    assert sorted(store.names("place")) == ["b", "d"]


HOLDER = f"""
import pathlib, runpy, sys
lock = runpy.run_path({_process_lock.__file__!r})["ProcessLock"](pathlib.Path(sys.argv[1]))
print(lock.acquire(), flush=True)
sys.stdin.read()
"""


def test_lock_is_that_of_one_process_and_ends_with_it(tmp_path: pathlib.Path) -> None:
    path, pipe = tmp_path / "locks" / "a0", subprocess.PIPE
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == b"True"
        assert not ProcessLock(path).acquire(longest=0)
        holder.kill()
        holder.wait()
    lock = ProcessLock(path)
    assert lock.acquire(longest=0)
    lock.release()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no /proc")
def test_process_that_is_stopped_is_not_waited_for(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pipe = tmp_path / "locks" / "a0", subprocess.PIPE
    monkeypatch.setattr(_process_lock, "LONGEST_FOR_STOPPED", 0.05)
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == b"True"
        holder.send_signal(signal.SIGSTOP)
        assert not ProcessLock(path).acquire(longest=600)
        holder.send_signal(signal.SIGCONT)
        holder.communicate(b"")
    lock = ProcessLock(path)
    assert lock.acquire(longest=0)
    assert path.read_text() == str(os.getpid())
    lock.release()


def test_process_that_holds_a_lock_takes_no_other(tmp_path: pathlib.Path) -> None:
    one, other = ProcessLock(tmp_path / "a0"), ProcessLock(tmp_path / "b1")
    assert one.acquire()
    assert not other.acquire()
    one.release()
    one.release()
    assert other.acquire()
    other.release()


def test_lock_is_free_again_after_an_entry_an_error_and_a_trace_that_is_not_written() -> None:
    def failing(x: Any) -> Any:
        stator.graph_break()
        return x

    run(lambda x: x + 1, X)
    run(makes_generators, X)
    stator.reset()
    with pytest.raises(stator.Unsupported):
        stator.compile(failing, backend="eager", fullgraph=True, options=OPTIONS)(X)
    assert not _process_lock._ONE.locked()


SCRIPT = f"""
import sys
import stator, torch
from stator_bytecode import Machine

runs = []
plain = Machine.run
Machine.run = lambda self, frames: runs.append(1) or plain(self, frames)
{PROGRAM}
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(x + self.attention(x, x, x, need_weights=False)[0])

torch.manual_seed(0)
for model, x in ((Model().eval(), torch.ones(2, 4)), (Block(), torch.ones(2, 3, 8))):
    compiled = stator.compile(model, backend=sys.argv[1], options={{"cache": True}})
    result = compiled(x)
    result.sum().backward()
    torch.testing.assert_close(result, model(x))
print(len(runs))
"""


def started(backend: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, backend]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_other_process_interprets_nothing(backend: str) -> None:
    outputs = [started(backend).communicate() for _ in range(2)]
    assert [text.strip() for text, _ in outputs] == ["2", "0"], outputs


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing_and_compile_once(folder: pathlib.Path) -> None:
    outputs = [each.communicate() for each in [started("eager") for _ in range(4)]]
    assert sum(int(text) for text, _ in outputs) == 2, outputs  # each of both models once
    assert started("eager").communicate()[0].strip() == "0"
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")]


def test_artifacts_of_torch_contain_the_entries(
    program: Any, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(program)
    with CacheArtifactManager.with_fresh_cache():
        run(model, X)
        found = stator.save_cache_artifacts()
    assert found is not None
    data, info = found
    assert len(info.artifacts["stator"]) == 1
    key = (folder / "key").read_bytes()

    for copy, is_known in ((folder.parent / "mine", True), (folder.parent / "other", False)):
        monkeypatch.setenv("STATOR_CACHE_DIR", str(copy))
        if is_known:
            copy.mkdir(mode=0o700)
            (copy / "key").write_bytes(key)
            (copy / "key").chmod(0o600)
            stator.load_cache_artifacts(data)
            assert run(model, X)[1] == [FROM_CACHE]
        else:
            stator.load_cache_artifacts(data)
            with pytest.warns(UserWarning, match="written under another key"):
                run(model, X)
