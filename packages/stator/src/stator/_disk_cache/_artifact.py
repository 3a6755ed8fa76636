"""Files of the cache among the artifacts of `torch.compiler.save_cache_artifacts`.

Torch writes what each cache has recorded into one bytes object, and lets each type of artifact put
its part back. Ours are authenticated files: one that was written under another key is refused, as
it would be in the folder.
"""

from __future__ import annotations

from torch.compiler._cache import CacheArtifact, CacheArtifactFactory, CacheArtifactManager

from stator._disk_cache._store import Refused, Store, folder
from stator._settings._deferred_warning import defer_warning

TYPE = "stator"


class EntryArtifact(CacheArtifact):
    """One file of the cache: its place and name, and its content with the code of
    authentication."""

    def populate_cache(self) -> None:
        place, _, name = self.key.partition("/")
        try:
            Store.of(folder()).adopt(place, name, self.content)
        except (Refused, OSError) as error:
            defer_warning(UserWarning(f"an artifact was not loaded: {error}"))

    @staticmethod
    def type() -> str:
        return TYPE


def register_artifacts() -> None:
    """Let torch write and load the files of the cache."""
    CacheArtifactFactory.register(EntryArtifact)


def record_artifact(store: Store, place: str, name: str) -> None:
    """Note a file that this process has written or read. Raises OSError."""
    CacheArtifactManager.record_artifact(TYPE, f"{place}/{name}", store.content(place, name))


def load_artifacts_of_compilers(data: bytes) -> None:
    """Put back what `torch.compiler.save_cache_artifacts` gave, but for files of this cache."""
    found = CacheArtifactManager.deserialize(data)
    if found is not None:
        found.pop(TYPE, None)
        CacheArtifactManager.populate_caches(found)
