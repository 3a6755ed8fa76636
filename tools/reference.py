"""Writes the generated pages of ``docs/reference``: ``python tools/reference.py``; the docs session
compares.

A page is a function from the code to text. Tables come from what the packages publish, never from a
second list.
"""

from __future__ import annotations

import inspect
import json
import pathlib
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import api_reference
import attrs
import captures_page
import import_graph
import opcode_tables
from interpreters import CURRENT
from stator import Options
from stator._settings._logs import SUBJECTS
from stator._settings._options import ENVIRONMENT, OURS
from stator_bytecode import DEFAULT, REFUSED

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"


def layers() -> str:
    """The layer table, from the contracts that are checked and the manifests that are installed."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    order = next(
        contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers"
    )
    rows = [row for names in order for name in names.split(" | ") for row in [_layer(name)]]
    head = ["| package | what it is | may import | third party |", "|---|---|---|---|"]
    return _page(
        "Layers",
        "From the top; a package imports only what stands below it and what it declares.",
        *head,
        *rows,
    )


def _layer(name: str) -> str:
    project = tomllib.loads(
        (ROOT / "packages" / name.replace("_", "-") / "pyproject.toml").read_text()
    )["project"]
    wanted = [
        dependency.partition(">")[0].partition("=")[0] for dependency in project["dependencies"]
    ]
    siblings = [f"`{each}`" for each in wanted if each.startswith("stator")]
    others = [f"`{each}`" for each in wanted if not each.startswith("stator")]
    imported = f"{', '.join(siblings) or '-'} | {', '.join(others)}"
    return f"| `{project['name']}` | {project['description']} | {imported} |"


def imports() -> str:
    """Return the drawings of the imports between and inside packages."""
    return import_graph.page(ROOT)


def captures() -> str:
    """Return the catalogue of captures, and the sizes of the kernel."""
    return _page("Captures", captures_page.LEAD, captures_page.body(ROOT))


def opcodes() -> str:
    """Neutral operations and their handlers, and what is refused."""
    return opcode_tables.page(DEFAULT, REFUSED)


def behaviours() -> str:
    """Each behaviour with its programs: held in one graph, or with the break that `fullgraph=True`
    names."""
    from integration_tests.corpora.behaviours import catalogue, promise

    rows = [_behaviour(name, promise(name), found) for name, found in catalogue().items()]
    lead = (
        "What must hold, as programs of `integration_tests/corpora/behaviours`: each gives what "
        "plain Python gives over four calls with changing inputs under `fullgraph=True`, unless it "
        "is refused there for the reason given; on demand (`-m slow`) also broken at every call, "
        "operation and instruction."
    )
    head = ["| behaviour | module | programs | in one graph | refused |", "|---|---|---|---|---|"]
    return _page("Behaviours", lead, *head, *rows)


def impure_reads() -> str:
    """What no argument holds, and what is done with each."""
    from integration_tests.guards_and_recompiles.impure_reads import READS

    lead = (
        "Reads of what no argument holds, each a row of "
        "`integration_tests/guards_and_recompiles/impure_reads.py` that is tested. *guard*: read "
        "while tracing; what the program does with it is compared by every call before its entry "
        "runs. *re-read*: the entry, or its graph, reads it each time. *break*: it runs natively, "
        "where it stands. What is in no table of handlers breaks."
    )
    return _page(
        "Impure reads",
        lead,
        "| what | policy |",
        "|---|---|",
        *(f"| {r.name} | {r.policy} |" for r in READS),
    )


def options() -> str:
    """Return the table of the options of stator, each with the test that shows its effect."""
    fields = {field.name: field for field in attrs.fields(Options)}
    rows = [_option(fields[name], text) for name, text in OURS.items()]
    switches = [f"| `{name}` | {text} |" for name, text in _VARIABLES.items()]
    subjects = [f"| `{name}` | {text} |" for name, text in SUBJECTS.items()]
    lead = (
        "The keys of `options=` that are no backend's; the others go to the backend, and "
        "`stator.list_options()` has those of Inductor. Tests are in "
        "`packages/stator/tests/test_options.py`. Keywords of `compile` and settings of "
        "`torch._dynamo.config`: [torch-compile.md](torch-compile.md)."
    )
    table = ["| option | type | default | effect | variable | test |", "|---|---|---|---|---|---|"]
    variables = ["", "## Environment variables", "", "| variable | effect |", "|---|---|"]
    logs = [
        *("", "## Logs", ""),
        "Subjects of `STATOR_LOGS` and keywords of `set_logs`; each has a logger below `stator`.",
        *("", "| subject | records |", "|---|---|"),
    ]
    return _page("Options", lead, *table, *rows, *variables, *switches, *logs, *subjects)


_VARIABLES = {
    "STATOR_LOGS": "log these subjects to stderr: `graph_breaks,+guards`; `+` with details, "
    "`-` errors only, `all`",
    "STATOR_LOGS_OUT": "the file that the log goes into as well",
    "STATOR_CACHE_DIR": "the folder of the cache on disk; by default `stator` in the user's folder "
    "for caches",
    "STATOR_CACHE_SIZE": "the bytes that its entries may take; by default 1 GiB",
    "STATOR_PROGRESS": "`0`: no line while compilations take long",
    "STATOR_FULL_TRACEBACK": "`1`: errors show the frames of stator and of the backend, too",
    "TORCH_LOGS": "torch's own: records of subjects that are artifacts of torch appear there too",
    "TORCH_TRACE": "a folder for traces that `tlparse` reads, those of stator included",
    "TORCH_COMPILE_DEBUG": "`1`: Inductor writes its files",
    "TORCH_COMPILE_DISABLE, TORCHDYNAMO_DISABLE": "`1`: nothing is compiled",
}


def _option(field: Any, text: str) -> str:
    kind = inspect.formatannotation(field.type).replace("collections.abc.", "").replace("|", "\\|")
    variable = f"`{ENVIRONMENT[field.name]}=1`" if field.name in ENVIRONMENT else ""
    facts = f"`{kind}` | `{field.default!r}` | {text} | {variable} | `test_{field.name}`"
    return f"| `{field.name}` | {facts} |"


def backend_contract() -> str:
    """Return the facts that a backend is given, the properties that it keeps, and those that
    lowering restores."""
    from stator_backends import BackendSpec, InputSpec, _contracts
    from stator_backends._capability_table import PROPERTIES
    from stator_backends._contracts._freed_history import cut_freed_history
    from stator_backends._contracts._late_writes import defer_writes
    from stator_backends._contracts._saved_tensors import retainable_graphs

    declared = [field for field in attrs.fields(BackendSpec) if field.name != "name"]
    fields = [f"- `{field.name}`, by default `{field.default}`" for field in declared]
    kept = [f"| {name} | {text} |" for name, text in PROPERTIES.items()]
    others = cut_freed_history, defer_writes, retainable_graphs
    contracts: list[Any] = [*_contracts.CONTRACTS, *others]
    restored = [*map(_contract, contracts)]
    facts = inspect.cleandoc(InputSpec.__doc__ or "").partition("\n\n")[2]
    return _page(
        "The contract of a backend",
        "A backend is a callable from a graph and example inputs to a callable. "
        "`python -m stator_backends.conformance BACKEND` prints which of the properties below it "
        "keeps in 165 small graphs.",
        *("## What a backend declares", "", "Fields of `stator_backends.BackendSpec`:", ""),
        *(*fields, "", "## What a backend is given", ""),
        "With `wants_graph_spec`, a `stator_backends.GraphSpec`. It has, for each input:",
        *("", facts, "", "## What a backend keeps", "", "| property | |", "|---|---|", *kept),
        *("", "## What lowering restores", ""),
        "Compilers do not keep these; a wrapper restores them at each call, where the trace shows "
        "that there is something to restore.",
        "",
        *("| file of `stator_backends/_contracts` | contract |", "|---|---|", *restored),
    )


def _contract(function: Callable[..., object]) -> str:
    text = inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    return f"| `{function.__module__.rpartition('.')[2]}.py` | {text.removeprefix('Contract: ')} |"


def _behaviour(name: str, promise: str, found: Mapping[str, Any]) -> str:
    broken = Counter(
        reason for marked in found.values() for reason in (marked.breaks or "").split()
    )
    whole = sum(marked.breaks is None for marked in found.values())
    refused = ", ".join(
        f"[{reason}](unsupported/{reason}.md) {count}" for reason, count in sorted(broken.items())
    )
    return f"| {promise} | `{name}` | {len(found)} | {whole} | {refused or '-'} |"


def _first_line(handler: Callable[..., object]) -> str:
    return (inspect.getdoc(handler) or "").partition("\n")[0].replace("|", "\\|")


def _page(title: str, lead: str, *lines: str) -> str:
    return (
        "\n".join(
            [f"# {title}", "", "<!-- generated by tools/reference.py -->", "", lead, "", *lines]
        )
        + "\n"
    )


def reasons() -> str:
    """The pages of reasons as data, which ship in the wheel: `stator/reasons.json`."""
    pages = sorted((FOLDER / "unsupported").glob("*.md"))
    found = {path.stem: _reason(path.read_text()) for path in pages}
    return json.dumps(found, indent=1) + "\n"


def _reason(text: str) -> dict[str, str]:
    """Return the parts of a page: what was met, why that is a break if it says so, and what to
    try."""
    _, _, body = text.partition("\n\n")
    before, *remedies = re.split(r"\*{0,2}What to try:\*{0,2}", body)
    what, *reasons = re.split(r"\*{0,2}Why:\*{0,2}", before)
    parts = {"what": what, "why": "".join(reasons), "remedy": "".join(remedies)}
    return {name: part.strip() for name, part in parts.items()}


REASONS = ROOT / "packages" / "stator" / "src" / "stator" / "reasons.json"


def index_of_reasons() -> str:
    """Return the table of the pages of reasons."""
    rows = [
        f"| [{slug}](unsupported/{slug}.md) | {_first_sentence(parts['what'])} |"
        for slug, parts in json.loads(reasons()).items()
    ]
    lead = (
        "Every reason that a report, an error or a log can name, with its page: what was met, why "
        "it is a break, and what to try. `python -m stator why SLUG` prints the same page."
    )
    return _page("Reasons", lead, "| reason | what was met |", "|---|---|", *rows)


def _first_sentence(text: str) -> str:
    sentence = re.split(r"(?<=[.:])\s", " ".join(text.split()), maxsplit=1)[0]
    return sentence.rstrip(".:").replace("|", "\\|")


PAGES: dict[str, Callable[[], str]] = {
    "layers.md": layers,
    "captures.md": captures,
    "import-graph.md": imports,
    "behaviours.md": behaviours,
    "impure-reads.md": impure_reads,
    "options.md": options,
    "backend-contract.md": backend_contract,
    "reasons.md": index_of_reasons,
    f"opcodes-{CURRENT}.md": opcodes,
}


API_PAGES = api_reference.pages(ROOT)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    (FOLDER / "api").mkdir(exist_ok=True)
    REASONS.write_text(reasons())
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page())
    for name, text in API_PAGES.items():
        (FOLDER / name).write_text(text)
