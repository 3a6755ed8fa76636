"""`load`: what `save` wrote, for an object of this process; what `dump` wrote, as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from stator._disk_cache._archive import Differs
from stator._disk_cache._artifact import load_artifacts_of_compilers
from stator._disk_cache._disk_cache import check_named, place_name
from stator._disk_cache._fingerprint import NotCached, of_options, versions
from stator._dumps._load import load_dump
from stator._settings._options import make_options
from stator._shipping._shipped_entries import ShippedEntries, differences
from stator._shipping._shipped_file import SUFFIX, ShippedFile
from stator._shipping._signed_file import VerifyingKey
from stator._shipping._versions import content_of_packages
from stator._subject import compiled, region_in
from stator.errors import InvalidUse


def load(
    path: str | Path,
    target: object = None,
    *,
    key: VerifyingKey | None = None,
    recompile: bool = False,
) -> Any:
    """Compile `target` from the file that `save` wrote for such an object; nothing is traced.

    `target` is the function or module itself: the file has no code and no weights of it. For a
    mapping of names to objects `path` is a folder. `key` is the one that the file was saved with,
    or the public key that belongs to it. A call for which the file has no entry raises InvalidUse
    with the difference; with `recompile` it is compiled as usual, with a warning.

    Without a target, `path` is a folder of `dump`, whose code is run: load only what you trust.

    Raises StatorError for a file that was not signed with the key or was changed, and InvalidUse
    for one that does not fit the target, the versions or the settings of this process.
    """
    path = Path(path)
    if target is None:
        return load_dump(path)
    if isinstance(target, Mapping):
        files = {name: path / f"{name}{SUFFIX}" for name in target}
        return {name: _load(files[name], each, key, recompile) for name, each in target.items()}
    return _load(path, target, key, recompile)


def _load(path: Path, target: object, key: VerifyingKey | None, recompile: bool) -> Any:
    if not path.is_file():
        raise InvalidUse(f"there is no file {str(path)!r}", "pass the path of stator.save")
    file = ShippedFile.of(path, key)
    _check_versions(file)
    made = make_options(**file.header["settings"])
    _refuse(file, [*differences(file.header["options"], of_options(made))])

    shipped = ShippedEntries(file, recompile)
    result = compiled(target, attrs.evolve(made, shipped=shipped, sharing=None))
    _check_target(file, result)
    if file.artifacts:
        load_artifacts_of_compilers(file.artifacts)
    return result


def _check_versions(file: ShippedFile) -> None:
    before, now = file.header["versions"], versions()
    found = [*differences({**before, "stator": ""}, {**now, "stator": ""})]
    if file.header["content of stator"] != content_of_packages():
        found.append("the files of stator are others")
    _refuse(file, found)


def _check_target(file: ShippedFile, result: Any) -> None:
    """Raise InvalidUse where the object is another one, or code that the entries refer to by name
    has changed."""
    target, name = region_in(result).root.target, file.header["name"]
    if place_name(target) != file.header["place"]:
        _refuse(file, [f"it was saved for {name}, not for {target.name}"])
    for place, each in file.entries:
        try:
            check_named(file.read(place, each))
        except (Differs, NotCached) as difference:
            _refuse(file, [str(difference)])


def _refuse(file: ShippedFile, found: list[str]) -> None:
    if found:
        problem = f"{file.path.name} does not fit: {'; '.join(found)}"
        raise InvalidUse(problem, "save it again as the program is now")
