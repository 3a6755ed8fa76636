"""Signed files: not one byte is parsed before the file is authenticated.

    MAGIC | length of the signature (2 bytes) | signature | data

The signature is an HMAC-SHA-256 under a secret key, or what a private key of a public-key library
gives. It covers the magic text and all of the data.
"""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import attrs

from stator._disk_cache._store import Refused, Store, folder, write_whole
from stator.errors import InvalidUse

MAGIC = b"stator shipped file 1\n"
SHORTEST_KEY = 16
_LENGTH = 2


@runtime_checkable
class Signer(Protocol):
    """A private key, as Ed25519PrivateKey of the library cryptography is one."""

    def sign(self, data: bytes, /) -> bytes: ...


@runtime_checkable
class Verifier(Protocol):
    """A public key, as Ed25519PublicKey of the library cryptography is one. It raises for a
    wrong signature."""

    def verify(self, signature: bytes, data: bytes, /) -> object: ...


SigningKey: TypeAlias = bytes | Signer
VerifyingKey: TypeAlias = bytes | Verifier


@attrs.frozen
class _Secret:
    """A secret key, which signs and verifies."""

    key: bytes = attrs.field(repr=False)

    def sign(self, data: bytes, /) -> bytes:
        return hmac.digest(self.key, data, "sha256")

    def verify(self, signature: bytes, data: bytes, /) -> bool:
        return hmac.compare_digest(signature, self.sign(data))


def _secret(key: bytes | None) -> _Secret:
    """Return the key that was given, or that of the user."""
    if key is not None and len(key) < SHORTEST_KEY:
        raise InvalidUse(
            f"a key of {len(key)} bytes is too short", f"pass at least {SHORTEST_KEY} random bytes"
        )
    return _Secret(Store.of(folder()).key if key is None else key)


def write_signed(path: Path, data: bytes, key: SigningKey | None) -> None:
    """Write a file whole or not at all. Raises InvalidUse for what is no key."""
    signer = _secret(key) if key is None or isinstance(key, bytes) else key
    if not isinstance(signer, Signer):
        hint = "pass bytes, or a private key with a method sign(data)"
        raise InvalidUse(f"a {type(key).__qualname__} signs nothing", hint)
    signature = signer.sign(MAGIC + data)
    content = MAGIC + len(signature).to_bytes(_LENGTH, "big") + signature + data
    write_whole(path, content)
    path.chmod(0o644)  # others may read it: it has no secret


def read_signed(path: Path, key: VerifyingKey | None) -> bytes:
    """Return the data of a file. Raises Refused where it was not signed with the key, or was
    changed since."""
    verifier = _secret(key) if key is None or isinstance(key, bytes) else key
    if not isinstance(verifier, Verifier):
        hint = "pass bytes, or a public key with a method verify(signature, data)"
        raise InvalidUse(f"a {type(key).__qualname__} verifies nothing", hint)

    content = path.read_bytes()
    start = len(MAGIC) + _LENGTH
    if len(content) < start or not content.startswith(MAGIC):
        raise Refused(f"{path.name} is no file of stator.save, or one of another version")
    end = start + int.from_bytes(content[len(MAGIC) : start], "big")
    signature, data = content[start:end], content[end:]
    _check(verifier, signature, MAGIC + data, path)
    return data


def _check(verifier: Verifier, signature: bytes, data: bytes, path: Path) -> None:
    text = f"{path.name} was changed, or signed with another key: it is not read"
    try:
        is_right = verifier.verify(signature, data)
    except Exception as error:  # each library has a class of its own for a wrong signature
        raise Refused(text) from error
    if is_right is not None and is_right is not True:
        raise Refused(text)
