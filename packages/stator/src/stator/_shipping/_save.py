"""`save`: one file with all that was compiled for one object.

    stator.save(compiled, "model.stator")                # of breaks and all sizes, too
    compiled = stator.load("model.stator", target)       # in another process, which traces nothing

The traces are those that the cache on disk has. What the backend compiled is in the file, too,
where torch can write it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from stator_backends import spec_of

from stator._disk_cache._disk_cache import EntryFile, place_name
from stator._disk_cache._fingerprint import of_options, versions
from stator._disk_cache._store import Refused
from stator._regions._region import Region
from stator._settings._options import Options
from stator._shipping._shipped_file import SUFFIX, ShippedFile
from stator._shipping._signed_file import SigningKey
from stator._shipping._versions import content_of_packages
from stator._subject import region_in
from stator.errors import InvalidUse

CACHE_HINT = "compile with options={'cache': True}, call it, and save it then"


def save(compiled: object, path: str | Path, *, key: SigningKey | None = None) -> Path:
    """Write all that was compiled for `compiled` into one file, and return its path.

    For a mapping of names to compiled objects `path` is a folder, with a file for each. The object
    has to be compiled with `options={"cache": True}`. `key` signs the file: a secret of at least 16
    bytes, or a private key with a method `sign(data)`, such as Ed25519PrivateKey of the library
    cryptography; None is the key of the user's cache, which other users do not have.

    Raises InvalidUse for what no file can hold.
    """
    path = Path(path)
    if isinstance(compiled, Mapping):
        path.mkdir(parents=True, exist_ok=True)
        for name, each in compiled.items():
            save(each, path / f"{name}{SUFFIX}", key=key)
        return path

    region = region_in(compiled)
    entries = dict(_entries(region))
    if not entries:
        raise InvalidUse(f"nothing was compiled for {region.root.target.name}", CACHE_HINT)
    ShippedFile(path, _header(region), entries, _artifacts(region.options)).write(key)
    return path


def _entries(region: Region) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Yield the files of all entries, latest first, by place and name. Raises InvalidUse where an
    entry has none."""
    name = region.root.target.name
    if not region.options.cache:
        raise InvalidUse(f"the traces of {name} were not kept", CACHE_HINT)
    for data in reversed(region.compiled):
        if data.file is not None:
            yield (data.file.place, data.file.name), _read(data.file, name)
        elif data.notes:
            problem = f"an entry of {data.name} cannot be saved: {'; '.join(data.notes)}"
            raise InvalidUse(problem, "change that, or leave the calls out that need it")


def _read(file: EntryFile, name: str) -> bytes:
    try:
        return file.read()
    except (Refused, OSError) as error:
        problem = f"a trace of {name} is not in the cache any more: {error}"
        raise InvalidUse(problem, "make STATOR_CACHE_SIZE larger, and compile again") from error


def _header(region: Region) -> dict[str, Any]:
    target, options = region.root.target, region.options
    return {
        "name": str(target.name),
        "place": place_name(target),
        "versions": versions(),
        "content of stator": content_of_packages(),
        "settings": _settings(options),
        "options": of_options(options),
        "plain": dict(_plain(region)),
    }


_OURS = (
    "fallback repeat_effects capture_data check keep_text uncompiled regions without cache"
).split()


def _settings(options: Options) -> dict[str, Any]:
    """Return the keywords of `make_options` that give these options."""
    backend: Any = options.backend
    mode, of_backend = getattr(backend, "mode", None), getattr(backend, "options", {})
    ours = {name: getattr(options, name) for name in _OURS}
    return {
        "backend": spec_of(backend).name,
        "mode": mode,
        "fullgraph": options.fullgraph,
        "dynamic": options.dynamic,
        "recompile_limit": options.recompile_limit,
        "name": options.name or None,
        "options": ours if mode else {**ours, **of_backend},
    }


def _plain(region: Region) -> Iterator[tuple[str, list[str]]]:
    """Yield the places where calls run plainly, and the reason."""
    for place in region.all_places():
        for reason in place.shared.refused:
            yield place_name(place.target), [reason.reason, reason.detail, reason.hint]


def _artifacts(options: Options) -> bytes:
    """Return what compilers have written in this process; nothing for a backend without one."""
    if not spec_of(options.backend).compiles:
        return b""
    found = torch.compiler.save_cache_artifacts()
    return b"" if found is None else found[0]
