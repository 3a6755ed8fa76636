"""Every check this repository runs, here and in CI: ``nox --list``; plain ``nox`` runs all tests of
the project.

Each session's environment is fresh and holds *built wheels* of our packages, never an editable
tree. The one thing that sessions share is torch with numpy: hundreds of megabytes, installed once
under ``.nox/shared`` and put on the path of the environments whose packages ask for it. Sessions
run on the interpreter that runs nox; packages that do not need torch are tested on every other
supported CPython of this machine as well.
"""

from __future__ import annotations

import concurrent.futures
import datetime
import os
import pathlib
import shlex
import shutil
import sys

import nox
from nox.command import CommandFailed
from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))
import interpreters  # noqa: E402
import run_examples  # noqa: E402
import version_table  # noqa: E402

nox.needs_version = ">=2025.2.9"
# pip takes the wheel of torch this machine is set up for; uv does not
nox.options.default_venv_backend = "virtualenv"
nox.options.sessions = ["layers", "lint", "wheels", "docs", "pages", "tests", "integration"]

PACKAGES = {
    p.parent.name: nox.project.load_toml(p) for p in sorted(ROOT.glob("packages/*/pyproject.toml"))
}
SOURCES = [str(ROOT / "packages" / name / "src") for name in PACKAGES]
TORCH = (
    "torch==2.13.0",
    "numpy>=1.26",
)  # exactly this release: the private interfaces we use move with each minor
MODELS = ("transformers>=5,<6",)
NOX = "nox>=2025.2.9"
TORCH_TESTS = ("expecttest>=0.2", "optree>=0.14")  # what torch's own tests and C++ pytrees import
RUNNER = ("pytest>=8", "pytest-timeout>=2.3", "pytest-xdist>=3.6", "hypothesis>=6.100")
LINTERS = (
    "ruff>=0.17,<0.18",
    "mypy>=2.4,<2.5",
    NOX,
    "packaging>=24",
    "sympy>=1.13",
    "attrs>=23.2",
)
SITE = (
    "sphinx>=9,<10",
    "myst-parser>=5,<6",
    "pydata-sphinx-theme>=0.24,<0.25",
    "sphinx-copybutton>=0.5,<0.6",
    "sphinx-external-toc>=1.1,<2",
    "sphinxcontrib-mermaid>=1",
)
# One thread for each of two workers: torch's own pool beside pytest-xdist runs three times slower.
QUIET = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "HF_HUB_OFFLINE": "1"}
NO_TESTS = 5  # the exit status of pytest where a selection leaves none
SOME_FAIL = 1
PYTEST = ("-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-n2", "--dist=worksteal")
PROGRAMS = (
    "corpora/behaviours",
    "corpora/fuzzing",
    "corpora/reported",
    "breaks/test_breaks.py",
    "exceptions",
    "guards_and_recompiles/test_call_series.py",
    "iteration",
    "language/test_statements.py",
)
"""The part of `integration_tests` that runs on every supported torch and CPython."""
OF_PACKAGES = [(ROOT / "packages" / name, ("tests",)) for name in PACKAGES]
OF_PROGRAMS = [(ROOT, tuple(f"integration_tests/{each}" for each in PROGRAMS))]


@nox.session(tags=["lint"])
def layers(session: nox.Session) -> None:
    """Imports go downward and are declared, names and sizes keep their limits."""
    session.install("import-linter>=2.1", "packaging>=24", "attrs>=23.2", NOX, *RUNNER)
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": os.pathsep.join(SOURCES)})
    session.run("python", "tools/check_layers.py")
    session.run("python", "tools/check_calls.py")
    session.run("python", "tools/check_paragraphs.py")
    session.run("python", "tools/check_names.py")
    session.run("python", "tools/check_owners.py")
    session.run("python", "tools/check_size.py")
    session.run("python", "tools/check_trackers.py")
    run_tests(session, "tools/tests", *session.posargs)


@nox.session(tags=["lint"])
def lint(session: nox.Session) -> None:
    """Style, formatting and strict types, over everything."""
    share_torch(session)
    session.install(*LINTERS, *RUNNER)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy", "noxfile.py", "tools", "integration_tests", *SOURCES)


@nox.session(tags=["lint"])
def wheels(session: nox.Session) -> None:
    """What the wheels hold, and what they say about themselves."""
    built = build(session, list(PACKAGES))
    session.install("twine>=6", "check-wheel-contents>=0.6")
    session.run("twine", "check", "--strict", *built)
    session.run("check-wheel-contents", *built)


@nox.session(tags=["test"])
@nox.parametrize("package", [nox.param(name, id=name) for name in PACKAGES])
def tests(session: nox.Session, package: str) -> None:
    """Test one package with the wheels of what it declares, and nothing else of ours."""
    wheels = build(session, needed_by(package))
    if needs_torch(package):
        share_torch(session)
    session.install(*wheels, *wanted_by_tests(package), *RUNNER)
    # relative to the folder that is current now
    elsewhere = pathlib.Path(session.create_tmp()).resolve()
    with session.chdir(ROOT / "packages" / package):
        run_tests(session, "tests", *session.posargs)
        if not needs_torch(package):
            test_elsewhere(session, elsewhere, wheels, wanted_by_tests(package))
        if knows_torch(package):  # parts of it do: the same tests once more, with torch at hand
            share_torch(session)
            run_tests(session, "tests", *session.posargs)


@nox.session(tags=["test"])
def integration(session: nox.Session) -> None:
    """The whole stack on real models, and the outside plugin."""
    install_everything(session)
    session.install(*TORCH_TESTS)
    session.install("--no-deps", *build_folders(session, ROOT / "integration_tests" / "plugin"))
    run_tests(session, "integration_tests", "--timeout=600", *session.posargs)


@nox.session(tags=["test"])
def docs(session: nox.Session) -> None:
    """Links, the examples of every README, the tiny machine, and generated pages being up to
    date."""
    install_everything(session)
    run_tests(session, "docs", *session.posargs)


@nox.session(tags=["test"])
def pages(session: nox.Session) -> None:
    """Run each page's examples in an environment with only what the page says to install."""
    folder = pathlib.Path(session.create_tmp()).resolve()
    share_torch(session)  # once, before two environments need it at the same time
    readmes = [ROOT / "README.md", *sorted(ROOT.glob("packages/*/README.md"))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run_pages, session, readme, folder) for readme in readmes]
    for run in runs:
        run.result()


@nox.session(default=False)
def site(session: nox.Session) -> None:
    """Make the site of the pages, build/site/index.html; a link that leads nowhere is an error."""
    session.install(*SITE)
    out = ROOT / "build" / "site"
    shutil.rmtree(out, ignore_errors=True)
    doctrees = pathlib.Path(session.create_tmp()).resolve() / "doctrees"
    sphinx = ("sphinx-build", "--fail-on-warning", "--keep-going", "--quiet", "--conf-dir", "docs")
    session.run(*sphinx, "--doctree-dir", str(doctrees), *session.posargs, str(ROOT), str(out))
    session.log(f"open {(out / 'index.html').as_uri()}")


@nox.session(default=False)
def demo(session: nox.Session) -> None:
    """Compile a 12-layer transformer and show what happened."""
    install_everything(session)
    session.run("python", "tools/demo.py", *session.posargs, env={"HF_HUB_OFFLINE": "1"})


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Ratios to torch.compile and to plain Python; rewrites docs/reference/benchmarks.md unless
    workloads are named."""
    install_everything(session)
    session.install(
        "--no-deps", "-r", str(ROOT / "integration_tests" / "benchmarks" / "requirements.txt")
    )
    session.run("python", "-m", "integration_tests.benchmarks", *session.posargs, env=QUIET)


@nox.session(tags=["nightly"], default=False)
@nox.parametrize(
    "cell", [nox.param(each, id=f"{each.torch}-{each.python}") for each in version_table.CELLS]
)
def versions(session: nox.Session, cell: version_table.Cell) -> None:
    """All package tests and programs on a torch and a CPython; their row of versions.md. Skipped
    where either cannot be had."""
    python, installed = prepare_cell(session, cell)
    folder = pathlib.Path(session.create_tmp()).resolve()
    failed = []
    for subject, runs in (("packages", OF_PACKAGES), ("programs", OF_PROGRAMS)):
        total = version_table.Counts()
        for number, (inside, arguments) in enumerate(runs):
            report = folder / f"{subject}-{number}.xml"
            total += run_in_cell(session, python, installed, inside, *arguments, report=report)
        if not session.posargs:
            version_table.record(cell, subject, total, f"{datetime.date.today()}")
        if total.failed:
            failed.append(subject)
    if failed:
        session.error(f"on {cell}, tests fail in {', '.join(failed)}")


@nox.session(tags=["nightly"], default=False)
def slow(session: nox.Session) -> None:
    """The tests marked slow, of the packages and of the whole stack."""
    install_everything(session)
    session.install(
        *TORCH_TESTS, *(each for package in PACKAGES for each in wanted_by_tests(package))
    )
    session.install("--no-deps", *build_folders(session, ROOT / "integration_tests" / "plugin"))
    for package in PACKAGES:
        with session.chdir(ROOT / "packages" / package):
            run_slow_tests(session, "tests")
    run_slow_tests(session, "integration_tests", "--timeout=3600")


@nox.session(tags=["nightly"], default=False)
def pyright(session: nox.Session) -> None:
    """Strict types of a user's script under pyright; `lint` has it under mypy. pyright fetches a
    Node where there is none."""
    install_everything(session)
    session.install("pyright>=1.1.414,<1.2")
    session.run("pyright")


def run_pages(session: nox.Session, readme: pathlib.Path, folder: pathlib.Path) -> None:
    """Install what ``readme`` says, and run its examples; the first README's environment also runs
    those of ``docs``."""
    (command,) = (body for _, body in run_examples.blocks(readme.read_text(), "shell"))
    # not by the folder's name: that of the clone may be the name of a package
    name = "-".join(readme.parent.relative_to(ROOT).parts) or "all"
    inside = make_environment(session, sys.executable, folder / name)
    if "torch" in command:
        share_torch(session, inside)  # satisfies the requirement without another download

    # as an argument, since the clone's path may have a space in it
    activate = str(pathlib.Path(inside).with_name("activate"))
    session.run_install("sh", "-c", f'. "$0" && {command}', activate, external=True)

    of_all_packages = readme.parent == ROOT
    examples = sorted(ROOT.glob("docs/**/*.md")) if of_all_packages else []
    run = (inside, "tools/run_examples.py")
    session.run(*run, "--shown", str(readme), external=True, env=QUIET)
    pages = [str(page) for page in examples if run_examples.blocks(page.read_text(), "python")]
    if pages:
        session.run(*run, "--apart", *pages, external=True, env=QUIET)


def needed_by(package: str) -> list[str]:
    """``package`` and every sibling it declares, directly or through another."""
    siblings = {Requirement(r).name for r in PACKAGES[package]["project"]["dependencies"]} & set(
        PACKAGES
    )
    return sorted({package}.union(*map(needed_by, siblings)))


def needs_torch(package: str) -> bool:
    declared = [r for name in needed_by(package) for r in PACKAGES[name]["project"]["dependencies"]]
    return any(Requirement(r).name == "torch" for r in [*declared, *wanted_by_tests(package)])


def knows_torch(package: str) -> bool:
    """Torch-free as a whole, with a few modules above that need torch."""
    layers = nox.project.load_toml(ROOT / "pyproject.toml")["tool"]["stator"]["layers"]
    return bool(layers["torch_only_in"].get(package.replace("-", "_")))


def wanted_by_tests(package: str) -> list[str]:
    return list(nox.project.dependency_groups(PACKAGES[package], "test"))


def build(session: nox.Session, names: list[str]) -> list[str]:
    """Wheels of these packages and of no others."""
    return build_folders(session, *(ROOT / "packages" / name for name in names))


def build_folders(session: nox.Session, *folders: pathlib.Path) -> list[str]:
    session.install("hatchling", silent=True)
    out = pathlib.Path(session.create_tmp()).resolve() / "wheels"
    shutil.rmtree(out, ignore_errors=True)
    command = (
        "python",
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(out),
    )
    session.run_install(*command, *map(str, folders))
    return sorted(map(str, out.glob("*.whl")))


def share_torch(
    session: nox.Session, python: str = "python", tag: str = str(sys.implementation.cache_tag)
) -> None:
    """Put the one torch of ``.nox/shared`` for this interpreter on the path of its environment."""
    # The folder's name is part of compiler command lines: letters only, no "==".
    # Tools recognize installed code by "site-packages" in its path: hypothesis
    # parses every module of the latter for constants, more than 800 of torch in each process.
    folder = f"{tag}-{TORCH[0].replace('==', '-')}"
    shared = shared_folder() / folder / "site-packages"
    if not (shared / "complete").exists():
        command = (
            python,
            "-m",
            "pip",
            "install",
            "-q",
            "--target",
            str(shared),
            "--upgrade",
            *TORCH,
        )
        session.run_install(*command, external=True)
        (shared / "complete").touch()
    script = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = session.run_install(python, "-c", script, silent=True, external=True)
    (pathlib.Path(str(site).strip()) / "shared_torch.pth").write_text(f"{shared}\n")


def shared_folder() -> pathlib.Path:
    """Return the folder of what sessions share: below the clone, unless its path has a character,
    such as a space, with which Inductor's compiler does not find torch."""
    if shlex.quote(str(ROOT)) == str(ROOT):
        return ROOT / ".nox" / "shared"
    return pathlib.Path.home() / ".cache" / "stator" / "shared"


def install_everything(session: nox.Session) -> None:
    share_torch(session)
    session.install(*build(session, list(PACKAGES)), *MODELS, *RUNNER)


def run_tests(session: nox.Session, *arguments: str) -> None:
    session.run("python", *PYTEST, *arguments, env=QUIET)


def run_slow_tests(session: nox.Session, *arguments: str) -> None:
    """Run the tests marked slow; a folder may have none."""
    command = ("python", *PYTEST, "-m", "slow", *arguments, *session.posargs)
    session.run(*command, env=QUIET, success_codes=[0, NO_TESTS])


def prepare_cell(session: nox.Session, cell: version_table.Cell) -> tuple[str, dict[str, str]]:
    """Return the Python of a cell, and the variables with which it has the wheels of our packages.

    An interpreter with this torch runs as it is, nothing is installed in its environment: it may be
    a script that starts one in another root. For the pinned release an environment is made.
    """
    wheels = build(session, list(PACKAGES))
    folder = pathlib.Path(session.create_tmp()).resolve()
    python = interpreters.find_with_torch(cell.python, cell.torch)
    if python is not None:
        ours = folder / "installed"
        shutil.rmtree(ours, ignore_errors=True)
        command = ("python", "-m", "pip", "install", "-q", "--no-deps", "--target", str(ours))
        session.run_install(*command, *wheels)
        return python, {"PYTHONPATH": str(ours)}

    python = interpreters.find(cell.python)
    if python is None or not TORCH[0].startswith(f"torch=={cell.torch}."):
        session.skip(f"NOT TESTED on {cell}: no such interpreter ({interpreters.NAMED})")
    inside = make_environment(session, python, folder / cell.python)
    try:
        share_torch(session, inside, f"cpython-{cell.python.replace('.', '')}")
    except CommandFailed:
        session.skip(f"NOT TESTED on {cell}: {TORCH[0]} cannot be installed for it")
    wanted = {each for package in PACKAGES for each in wanted_by_tests(package)}
    install_inside(session, inside, *wheels, *sorted(wanted))
    return inside, {}


def run_in_cell(
    session: nox.Session,
    python: str,
    installed: dict[str, str],
    folder: pathlib.Path,
    *arguments: str,
    report: pathlib.Path,
) -> version_table.Counts:
    """Run tests in `folder`, and return what pytest counted; a run that breaks off is an error."""
    report.unlink(missing_ok=True)
    command = (python, *PYTEST, f"--junitxml={report}", *arguments, *session.posargs)
    with session.chdir(folder):
        session.run(
            *command,
            external=True,
            env=QUIET | installed,
            success_codes=[0, SOME_FAIL, NO_TESTS],
        )
    return version_table.counts(report)


def make_environment(session: nox.Session, python: str, folder: pathlib.Path) -> str:
    """Make an empty environment of another interpreter and return its Python."""
    session.run_install(python, "-m", "venv", "--clear", str(folder), external=True)
    return str(folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))


def install_inside(session: nox.Session, python: str, *requirements: str) -> None:
    """Install these and the test runner in the environment of another interpreter."""
    session.run_install(python, "-m", "pip", "install", "-q", *requirements, *RUNNER, external=True)


def test_elsewhere(
    session: nox.Session, folder: pathlib.Path, wheels: list[str], wanted: list[str]
) -> None:
    """The same tests on each other supported CPython; one that is missing is said, not passed
    over."""
    for version in (*interpreters.SUPPORTED, *interpreters.WITH_NEWER_TORCH):
        python = interpreters.find(version)
        if version == interpreters.CURRENT:
            continue
        if python is None:
            session.warn(f"NOT TESTED on CPython {version}: no such interpreter on this machine")
            continue
        inside = make_environment(session, python, folder / version)
        install_inside(session, inside, *wheels, *wanted)
        session.run(inside, *PYTEST, "tests", *session.posargs, external=True, env=QUIET)
