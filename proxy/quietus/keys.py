"""The keys of a ledger, and everything that is made with them.

Three keys live in one file: `hmac` makes pseudonyms and digests, `wrapping` wraps the data key of
each erasure, `signing` (Ed25519) signs receipts. Key ids are derived from the keys themselves, so
that a damaged key cannot pass under its old id; the ledger keeps the ids, and a process whose keys
are others refuses to start.

What a probe needs in clear is sealed under a data key of the erasure's own. The data key is random,
stands in the ledger only wrapped, and is destroyed when the erasure's watch ends: from then on
nobody can open what was sealed, whatever copies of the ledger exist.

A key can be put in the place of another (`key_file.rotate`): the old one still opens and checks what was made
with it. Every use has its own derived key or its own associated data: no output for one use is ever valid
for another.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from quietus.core.scope import Path as ScopePath
from quietus.core.scope import Paths, Scope, Values, Wild
from quietus.key_file import USES, Key, KeysRefused, derive, load, make

SIZE: Final = 16
"""Bytes in a pseudonym and in a digest: 128 bits."""
_VERSION: Final = 1
_NONCE: Final = 12
_CACHED: Final = 8192
_CACHED_LENGTH: Final = 256
_KINDS: Final = 64


class SealBroken(Exception):
    """Sealed bytes were altered, or belong to another name or another key."""


class SealKey:
    """The data key of one erasure. Seals bytes under a name; opens them under the same name only."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, name: str, plaintext: bytes) -> bytes:
        """Encrypts and authenticates; the result differs each time."""
        return _encrypt(self._cipher, b"quietus/seal/1\0" + name.encode(), plaintext)

    def open(self, name: str, sealed: bytes) -> bytes:
        """The inverse of `seal`. Raises SealBroken."""
        return _decrypt(self._cipher, b"quietus/seal/1\0" + name.encode(), sealed)


class Keyring:
    """The three keys, loaded. Make one with `load_or_make`, or with `fresh` where nothing is kept."""

    def __init__(self, kept: Sequence[Key]) -> None:
        """`kept` are the keys of all uses, those of one use oldest first; the newest is worked with."""
        now = {each.use: each for each in kept}
        self._signing = Ed25519PrivateKey.from_private_bytes(now["signing"].key)
        self.signing_id = now["signing"].id
        """The id of the key that signs."""
        wrapping = [each for each in kept if each.use == "wrapping"]
        self._wrappings = [
            (AESGCM(derive(each.key, b"wrap", 32)), _wrapping_name(each.id)) for each in reversed(wrapping)
        ]
        self.signing_keys = [(each.id, _public(each.key)) for each in reversed(kept) if each.use == "signing"]
        """Ids and raw public keys that signatures are checked with, the newest first."""
        self._pseudonym_key = derive(now["hmac"].key, b"pseudonym", 32)
        self._digest_key = derive(now["hmac"].key, b"digest", 64)
        self._digests: dict[str, hashlib.blake2b] = {}
        self._cached = lru_cache(maxsize=_CACHED)(self._fresh_pseudonym)
        first = {each.use: each.id for each in reversed(kept)}
        self.ids: frozenset[str] = frozenset(first.values())
        """Public names of the first keys of each use, to which a ledger is bound: they say nothing about
        the keys. A key that was put in the place of another does not change whose ledger it is."""

    @classmethod
    def fresh(cls) -> Keyring:
        """New random keys that are kept nowhere: for a ledger in memory, and for tests."""
        return cls([Key(use, secrets.token_bytes(32)) for use in USES])

    @classmethod
    def load_or_make(cls, path: str | os.PathLike[str], *, ledger_is_new: bool) -> Keyring:
        """The keys in the file, or new ones if there is no file and the ledger is new.

        Raises KeysRefused when the file is missing for a ledger that is not new, is readable by
        others, or is damaged. A file that is made is readable by its owner only.
        """
        where = Path(path)
        if not where.exists():
            if not ledger_is_new:
                raise KeysRefused(
                    f"the keys file {where} is missing and the ledger is not new: without its keys nothing "
                    "in the ledger can be matched; restore the file from its backup"
                )
            make(where)
        return cls(load(where))

    def pseudonym(self, kind: str, value: str) -> bytes:
        """16 bytes that stand for an identifier: HMAC-SHA-256, cut. Equal in, equal out."""
        if len(value) > _CACHED_LENGTH:  # nobody's usual id; the cache is bounded in bytes, too
            return self._fresh_pseudonym(kind, value)
        return self._cached(kind, value)

    def digest(self, kind: str, data: bytes) -> bytes:
        """16 bytes that stand for a content: keyed BLAKE2b."""
        return self.digests(kind, (data,))[0]

    def digests(self, kind: str, data: Sequence[bytes]) -> list[bytes]:
        """`digest` of each of them. The hot path of screening."""
        keyed = self._digests.get(kind)
        if keyed is None:
            keyed = hashlib.blake2b(_framed(kind), digest_size=SIZE, key=self._digest_key)
            if len(self._digests) < _KINDS:
                self._digests[kind] = keyed
        found = []
        for piece in data:
            hasher = keyed.copy()
            hasher.update(piece)
            found.append(hasher.digest())
        return found

    def pseudonymise(self, scope: Scope) -> Scope:
        """The scope with a pseudonym for each atom; ANY and UNKNOWN stay what they are.

        A segment's pseudonym depends on the segments above it: equal names under different parents
        cannot be told to be equal, and a path still covers exactly what lies below it.
        """
        return Scope(
            tenant=self._values("tenant", scope.tenant),
            subject=self._values("subject", scope.subject),
            purpose=self._values("purpose", scope.purpose),
            path=self._paths(scope.path),
            key=self._values("key", scope.key),
        )

    def pseudonymise_path(self, path: ScopePath) -> tuple[bytes, ...]:
        """The pseudonyms of a path's segments, each depending on those above it."""
        found: list[bytes] = []
        above = b""
        for segment in path:
            above = self._mac("path", above + _text(segment).encode("utf-8", "surrogatepass"))
            found.append(above)
        return tuple(found)

    def new_erasure_key(self) -> tuple[SealKey, bytes]:
        """A random data key, and the same key wrapped, for the ledger to keep as secret "key"."""
        key = AESGCM.generate_key(256)
        return SealKey(key), _encrypt(*self._wrappings[0], key)

    def unwrap(self, wrapped: bytes) -> SealKey:
        """The data key again. Raises SealBroken."""
        for cipher, name in self._wrappings[:-1]:
            with suppress(SealBroken):
                return SealKey(_decrypt(cipher, name, wrapped))
        return SealKey(_decrypt(*self._wrappings[-1], wrapped))

    def sign(self, use: str, data: bytes) -> bytes:
        """An Ed25519 signature over the use and the data: see `signed_bytes`."""
        return self._signing.sign(signed_bytes(use, data))

    def salt(self, erasure: str) -> bytes:
        """16 bytes that only the keys' holder can name: for the commitment in an erasure's receipt."""
        return self._mac("receipt-salt", erasure.encode())

    @property
    def public_key(self) -> bytes:
        """The 32 raw bytes of the key that signatures are checked with."""
        return self.signing_keys[0][1]

    def _fresh_pseudonym(self, kind: str, value: str) -> bytes:
        return self._mac(kind, value.encode("utf-8", "surrogatepass"))

    def _mac(self, kind: str, data: bytes) -> bytes:
        return hmac.digest(self._pseudonym_key, _framed(kind) + data, "sha256")[:SIZE]

    def _values(self, kind: str, values: Values) -> Values:
        if isinstance(values, Wild):
            return values
        return frozenset(self.pseudonym(kind, _text(value)) for value in values)

    def _paths(self, paths: Paths) -> Paths:
        if isinstance(paths, Wild):
            return paths
        return frozenset(self.pseudonymise_path(path) for path in paths)


def signed_bytes(use: str, data: bytes) -> bytes:
    """What a signature for `use` is over: a receipt's signature is valid for nothing else."""
    return b"quietus/sign/1\0" + _framed(use) + data


def _public(key: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def _wrapping_name(name: str) -> bytes:
    return b"quietus/wrap/1\0" + name.encode()


def _text(atom: str | bytes) -> str:
    if isinstance(atom, bytes):
        raise TypeError("a scope is pseudonymised once: an atom of this one is a digest already")
    return atom


def _framed(kind: str) -> bytes:
    # The length stands first, so that no kind and data read like another kind and other data.
    name = kind.encode()
    return len(name).to_bytes(2, "big") + name


def _encrypt(cipher: AESGCM, name: bytes, plaintext: bytes) -> bytes:
    nonce = os.urandom(_NONCE)
    return bytes([_VERSION]) + nonce + cipher.encrypt(nonce, plaintext, name)


def _decrypt(cipher: AESGCM, name: bytes, sealed: bytes) -> bytes:
    if len(sealed) <= _NONCE or sealed[0] != _VERSION:
        raise SealBroken("sealed bytes have an unknown form")
    try:
        return cipher.decrypt(sealed[1 : 1 + _NONCE], sealed[1 + _NONCE :], name)
    except InvalidTag:
        raise SealBroken("sealed bytes do not open under this key and name") from None
