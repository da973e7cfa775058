"""The keyring: made once, refused when it is not whole, and no use of a key is valid for another."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from quietus.core.scope import ANY, UNKNOWN, Scope, covers, overlaps
from quietus.key_file import MOST, ROTATED, KeysRefused, rotate
from quietus.keys import SIZE, Keyring, SealBroken, signed_bytes


@pytest.fixture
def loose_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def keyring() -> Keyring:
    return Keyring.fresh()


@pytest.mark.usefixtures("loose_umask")
def test_keys_are_made_once_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    made = Keyring.load_or_make(path, ledger_is_new=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in tmp_path.iterdir()] == ["keys.json"]
    text = path.read_bytes()
    for ledger_is_new in (True, False):
        loaded = Keyring.load_or_make(path, ledger_is_new=ledger_is_new)
        assert loaded.ids == made.ids
        assert loaded.pseudonym("subject", "alice") == made.pseudonym("subject", "alice")
        assert loaded.public_key == made.public_key
    assert path.read_bytes() == text
    assert len(made.ids) == 3
    assert made.ids.isdisjoint(Keyring.fresh().ids)


def test_keys_are_never_made_for_a_ledger_that_is_not_new(tmp_path: Path) -> None:
    with pytest.raises(KeysRefused, match="missing.*restore"):
        Keyring.load_or_make(tmp_path / "keys.json", ledger_is_new=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(KeysRefused, match="make its folder"):
        Keyring.load_or_make(tmp_path / "none" / "keys.json", ledger_is_new=True)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_keys_that_others_can_read_are_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys.json"
    Keyring.load_or_make(path, ledger_is_new=True)
    path.chmod(mode)
    with pytest.raises(KeysRefused, match="chmod 600"):
        Keyring.load_or_make(path, ledger_is_new=False)


def test_damaged_keys_are_refused_and_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    Keyring.load_or_make(path, ledger_is_new=True)
    whole = json.loads(path.read_text())
    key = whole["keys"][0]["key"]
    other = ("0" if key[0] != "0" else "1") + key[1:]
    swapped = [{**whole["keys"][0], "key": whole["keys"][1]["key"]}, *whole["keys"][1:]]
    documents = [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        json.dumps({"version": 1}),
        json.dumps({"version": 2, "keys": whole["keys"]}),
        json.dumps({"version": 1, "keys": whole["keys"][:2]}),
        json.dumps({"version": 1, "keys": [*whole["keys"], whole["keys"][0]]}),
        json.dumps({"version": 1, "keys": [{**whole["keys"][0], "key": other}, *whole["keys"][1:]]}),
        json.dumps({"version": 1, "keys": [{**whole["keys"][0], "key": key[2:]}, *whole["keys"][1:]]}),
        json.dumps({"version": 1, "keys": [{**whole["keys"][0], "key": 7}, *whole["keys"][1:]]}),
        json.dumps({"version": 1, "keys": swapped}),
        json.dumps({"version": 1, "keys": "xyz"}),
    ]
    for document in documents:
        path.write_text(document)
        with pytest.raises(KeysRefused, match="restore|upgrade") as refusal:
            Keyring.load_or_make(path, ledger_is_new=True)
        assert key not in str(refusal.value)
        assert refusal.value.__cause__ is None


@pytest.mark.requirement("R205")
def test_pseudonyms_are_keyed_and_apart(keyring: Keyring) -> None:
    alice = keyring.pseudonym("subject", "alice")
    assert len(alice) == SIZE
    assert keyring.pseudonym("subject", "alice") == alice
    assert keyring.pseudonym("subject", "Alice") != alice
    assert keyring.pseudonym("tenant", "alice") != alice
    assert Keyring.fresh().pseudonym("subject", "alice") != alice
    assert keyring.pseudonym("sub", "jectalice") != keyring.pseudonym("subject", "alice")
    assert keyring.digest("subject", b"alice") != alice
    long = "a" * 100_000
    assert keyring.pseudonym("subject", long) == keyring.pseudonym("subject", long)
    assert keyring.pseudonym("subject", "\ud800") != keyring.pseudonym("subject", "?")


def test_digests_are_keyed_and_apart(keyring: Keyring) -> None:
    text = keyring.digest("text", b"two sentences")
    assert len(text) == SIZE
    assert keyring.digest("text", b"two sentences") == text
    assert keyring.digest("text", b"two sentences.") != text
    assert keyring.digest("shingle:8", b"two sentences") != text
    assert keyring.digest("te", b"xttwo sentences") != text
    assert Keyring.fresh().digest("text", b"two sentences") != text
    kinds = {f"kind{number}": keyring.digest(f"kind{number}", b"x") for number in range(200)}
    assert len(set(kinds.values())) == 200
    assert all(keyring.digest(kind, b"x") == found for kind, found in kinds.items())


def test_a_scope_is_pseudonymised_whole_and_keeps_its_algebra(keyring: Keyring) -> None:
    scope = Scope(
        tenant=frozenset({"t"}),
        subject=frozenset({"alice", "bob"}),
        purpose=UNKNOWN,
        path=frozenset({("a", "b")}),
    )
    hidden = keyring.pseudonymise(scope)
    assert hidden.tenant == frozenset({keyring.pseudonym("tenant", "t")})
    assert hidden.subject == frozenset({keyring.pseudonym("subject", name) for name in ("alice", "bob")})
    assert (hidden.purpose, hidden.key) == (UNKNOWN, ANY)

    def at(*path: str) -> Scope:
        return keyring.pseudonymise(Scope(path=frozenset({path})))

    assert covers(at("a", "b"), at("a", "b", "c"))
    assert not overlaps(at("a", "b"), at("a", "bc"))
    assert not overlaps(at("a", "b"), at("x", "b"))
    assert keyring.pseudonymise_path(("a", "b"))[1] != keyring.pseudonymise_path(("x", "b"))[1]
    assert keyring.pseudonymise_path(("a", "b")) != keyring.pseudonymise_path(("ab",))


def test_a_scope_is_not_pseudonymised_twice(keyring: Keyring) -> None:
    for scope in (Scope(subject=frozenset({"alice"})), Scope(path=frozenset({("a",)}))):
        with pytest.raises(TypeError):
            keyring.pseudonymise(keyring.pseudonymise(scope))


def test_what_is_sealed_opens_under_its_key_and_name_only(keyring: Keyring) -> None:
    key, wrapped = keyring.new_erasure_key()
    sealed = key.seal("witness:1", b"text")
    assert b"text" not in sealed
    assert key.seal("witness:1", b"text") != sealed
    again = keyring.unwrap(wrapped)
    assert again.open("witness:1", sealed) == b"text"
    assert again.open("empty", again.seal("empty", b"")) == b""
    for wrong, name in ((again, "witness:2"), (keyring.new_erasure_key()[0], "witness:1")):
        with pytest.raises(SealBroken):
            wrong.open(name, sealed)
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 1
        with pytest.raises(SealBroken):
            again.open("witness:1", bytes(altered))
    for cut in range(len(sealed)):
        with pytest.raises(SealBroken):
            again.open("witness:1", sealed[:cut])


def test_a_wrapped_key_opens_with_its_keyring_only(keyring: Keyring) -> None:
    key, wrapped = keyring.new_erasure_key()
    assert keyring.new_erasure_key()[1] != wrapped
    with pytest.raises(SealBroken):
        Keyring.fresh().unwrap(wrapped)
    with pytest.raises(SealBroken):
        keyring.unwrap(key.seal("key", b"k" * 32))
    with pytest.raises(SealBroken):
        key.open("key", wrapped)


def test_a_signature_is_for_one_use(keyring: Keyring) -> None:
    public = Ed25519PublicKey.from_public_bytes(keyring.public_key)
    signature = keyring.sign("receipt", b"data")
    public.verify(signature, signed_bytes("receipt", b"data"))
    for use, data in (("head", b"data"), ("receipt", b"other"), ("receip", b"tdata")):
        with pytest.raises(InvalidSignature):
            public.verify(signature, signed_bytes(use, data))


def test_a_keyring_does_not_show_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keyring = Keyring.load_or_make(path, ledger_is_new=True)
    shown = repr(keyring) + repr(keyring.new_erasure_key()[0]) + repr(sorted(keyring.ids))
    for entry in json.loads(path.read_text())["keys"]:
        assert entry["key"] not in shown
        assert entry["key"][:8] not in shown


@pytest.mark.parametrize("use", ROTATED)
def test_a_key_in_the_place_of_another_changes_no_identity(tmp_path: Path, use: str) -> None:
    path = tmp_path / "keys.json"
    before = Keyring.load_or_make(path, ledger_is_new=True)
    seal, wrapped = before.new_erasure_key()
    sealed, signature = seal.seal("predicate", b"x"), before.sign("receipt", b"said")
    old, new = rotate(path, use)
    assert old != new and stat.S_IMODE(path.stat().st_mode) == 0o600
    after = Keyring.load_or_make(path, ledger_is_new=False)
    assert after.ids == before.ids, "it is still the same ledger's"
    assert after.pseudonym("subject", "alice") == before.pseudonym("subject", "alice")
    assert after.unwrap(wrapped).open("predicate", sealed) == b"x"
    public = dict(after.signing_keys)
    checker = Ed25519PublicKey.from_public_bytes(public[before.signing_id])
    checker.verify(signature, signed_bytes("receipt", b"said"))
    assert (after.signing_id != before.signing_id) is (use == "signing")
    _, again = after.new_erasure_key()
    if use == "wrapping":
        with pytest.raises(SealBroken):
            before.unwrap(again)
    assert [item.name for item in tmp_path.iterdir()] == ["keys.json"]


def test_the_key_of_the_digests_is_never_replaced_and_a_file_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    Keyring.load_or_make(path, ledger_is_new=True)
    text = path.read_bytes()
    with pytest.raises(KeysRefused, match="recognised"):
        rotate(path, "hmac")
    with pytest.raises(KeysRefused, match="wrapping, signing"):
        rotate(path, "master")
    assert path.read_bytes() == text
    for _ in range(MOST - 3):
        rotate(path, "signing")
    with pytest.raises(KeysRefused, match="all it may"):
        rotate(path, "signing")
    Keyring.load_or_make(path, ledger_is_new=False)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda keys: [*keys, keys[0]],
        lambda keys: [*keys, {"use": "hmac", "id": "hmac-00", "key": "00" * 32}],
        lambda keys: [*keys, {**keys[2], "id": "signing-0000000000000000"}],
        lambda keys: [*keys, {"use": "other", "id": "x", "key": "00" * 32}],
        lambda keys: keys[:2],
    ],
)
def test_a_file_with_a_key_too_many_or_too_few_is_refused(tmp_path: Path, spoil: Any) -> None:
    path = tmp_path / "keys.json"
    Keyring.load_or_make(path, ledger_is_new=True)
    document = json.loads(path.read_text())
    document["keys"] = spoil(document["keys"])
    path.write_text(json.dumps(document))
    with pytest.raises(KeysRefused, match="damaged"):
        Keyring.load_or_make(path, ledger_is_new=False)
