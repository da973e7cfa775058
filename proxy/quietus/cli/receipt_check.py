"""Checks a receipt offline. It shares no code with what writes them: docs/receipts.md is all that it knows.

Nothing of `quietus` is imported here, so that a fault of the writer is not repeated by the reader.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

SIZE_MAX: Final = 4 << 20
_SIGNED: Final = b"quietus/sign/1\0" + len(b"receipt").to_bytes(2, "big") + b"receipt"
_BROKEN: Final = "its signature does not hold: something in it was changed, or another key signed"
_COMMITTED: Final = b"quietus/commitment/1\0"


class BadReceipt(Exception):
    """The receipt does not hold; the message says why."""


class BadKeys(Exception):
    """The file with the public keys cannot be used."""


def checked(raw: bytes, published: bytes) -> dict[str, Any]:
    """The receipt in `raw` if its signature holds under one of the published keys.

    Raises BadReceipt, BadKeys.
    """
    keys = _keys(published)
    receipt = _read(raw)
    signature = receipt.get("signature")
    if receipt.get("type") != "quietus.receipt/1" or not isinstance(signature, dict):
        raise BadReceipt("it is not a receipt of a kind that is known here")
    if set(signature) != {"algorithm", "key", "value"} or signature["algorithm"] != "Ed25519":
        raise BadReceipt("its signature is not an Ed25519 signature with a key's name")
    key = keys.get(signature["key"]) if isinstance(signature["key"], str) else None
    key = key or keys.get("")
    if key is None:
        raise BadReceipt("it is signed with a key that is not among the published ones")
    said = {**receipt, "signature": {name: signature[name] for name in ("algorithm", "key")}}
    try:
        key.verify(bytes.fromhex(signature["value"]), _SIGNED + _canonical(said))
    except (InvalidSignature, ValueError, TypeError):
        raise BadReceipt(_BROKEN) from None
    return receipt


def about(receipt: Mapping[str, Any], salt: str, named: Mapping[str, Sequence[str]]) -> None:
    """Proves whom a receipt is about. Raises BadReceipt."""
    try:
        grains = bytes.fromhex(salt)
    except ValueError:
        raise BadReceipt("the salt is not hexadecimal") from None
    said = {name: sorted(values) for name, values in named.items() if values}
    found = hashlib.sha256(_COMMITTED + grains + _canonical(said)).hexdigest()
    about = receipt.get("about")
    if not isinstance(about, dict) or about.get("commitment") != found:
        raise BadReceipt("it is not about what was named, or the salt is another erasure's")


def _read(raw: bytes) -> dict[str, Any]:
    if len(raw) > SIZE_MAX:
        raise BadReceipt(f"it is larger than {SIZE_MAX} bytes")
    try:
        found = json.loads(
            raw, object_pairs_hook=_once, parse_float=_no_fraction, parse_constant=_no_fraction
        )
    except (ValueError, RecursionError):
        raise BadReceipt("it is not one JSON object without fractions and without repeated names") from None
    if not isinstance(found, dict):
        raise BadReceipt("it is not a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is repeated")
    return found


def _no_fraction(_text: str) -> Any:
    raise ValueError("a fraction")


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _keys(published: bytes) -> dict[str, Ed25519PublicKey]:
    """The keys by name: a JSON key list, or one PEM key, which fits any name."""
    if published.lstrip().startswith(b"-----BEGIN"):
        try:
            one = load_pem_public_key(published)
        except ValueError:
            raise BadKeys("the file is no PEM public key") from None
        if not isinstance(one, Ed25519PublicKey):
            raise BadKeys("the key is not an Ed25519 key")
        return {"": one}
    try:
        listed = json.loads(published)["keys"]
        return {
            str(each["id"]): Ed25519PublicKey.from_public_bytes(bytes.fromhex(each["public"]))
            for each in listed
        }
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadKeys("the file is neither PEM nor what `quietus keys list --json` prints") from None
