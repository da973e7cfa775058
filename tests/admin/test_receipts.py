"""Receipts over the admin API: signed, salted, provable offline, and broken by any change."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quietus.admin.tokens import Role
from quietus.cli import app
from quietus.cli.receipt_check import BadReceipt, checked
from quietus.core.states import State
from quietus.receipts import canonical, commit, published_keys
from tests.admin.desk import bearer, office

RUN = CliRunner()


async def fetched(client: Any, erasure: str, **headers: str) -> Any:
    answer = await client.get(
        f"/v1/erasures/{erasure}/receipt", headers={**bearer(Role.PRIVACY), **headers}
    )
    assert answer.status == 200, await answer.text()
    return answer


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every scalar, and of every list and object that is empty."""
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from leaves(each, (*at, name))
    elif isinstance(value, list) and value:
        for index, each in enumerate(value):
            yield from leaves(each, (*at, index))
    else:
        yield at


def changed(document: Any, place: tuple[Any, ...]) -> Any:
    """A copy in which one leaf says something else."""
    copied = copy.deepcopy(document)
    inside = copied
    for step in place[:-1]:
        inside = inside[step]
    old = inside[place[-1]]
    if isinstance(old, bool):
        inside[place[-1]] = not old
    elif isinstance(old, int):
        inside[place[-1]] = old + 1
    elif isinstance(old, str):
        inside[place[-1]] = ("f" if old[:1] != "f" else "e") + old[1:]
    else:
        inside[place[-1]] = "something"
    return copied


def verified(tmp_path: Path, document: Any, keys: Path, *more: str) -> Any:
    file = tmp_path / "receipt.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return RUN.invoke(app, ["receipt", "verify", str(file), "--public-key", str(keys), *more])


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def put(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def published_of(keyring: Any) -> bytes:
    return json.dumps(published_keys(keyring)).encode()


def publish(keys: Path, keyring: Any) -> None:
    keys.write_bytes(published_of(keyring))


@pytest.mark.requirement("R68")
async def test_every_field_changed_in_turn_is_found(tmp_path: Path, keys: Path) -> None:
    async with office() as (desk, client, world):
        erasure = await desk.erasure(State.LEAKING, subject="alice", tenant="acme")
        await desk.acts.escalate(erasure.id, "eve", "looked at by the on-call")
        receipt = await (await fetched(client, erasure.id)).json()
        publish(keys, world.parts.erasures.keyring)
        assert verified(tmp_path, receipt, keys).exit_code == 0
        places = list(leaves(receipt))
        assert len(places) > 60
        others = [changed(receipt, place) for place in places]
        others += [{each: receipt[each] for each in receipt if each != name} for name in receipt]
        others.append({**receipt, "note": "and this"})
        published = published_of(world.parts.erasures.keyring)
        for other in others:
            with pytest.raises(BadReceipt):
                checked(json.dumps(other).encode(), published)
        assert verified(tmp_path, others[0], keys).exit_code == 1


@pytest.mark.requirement("R68", "R69")
async def test_a_receipt_says_what_was_not_looked_at_and_names_nobody(keys: Path) -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure(State.SETTLED, subject="alice-the-first", tenant="acme")
        answer = await fetched(client, erasure.id)
        text = await answer.text()
        receipt = json.loads(text)
        assert "alice-the-first" not in text and "acme" not in text
        assert receipt["result"]["state"] == "settled" and receipt["result"]["verdict"] == "unconfirmed"
        assert {"backups"} <= {each["name"] for each in receipt["not_checked"]}
        assert all(each["outcome"] != "CLEAN" for each in receipt["not_checked"])
        assert receipt["sequence"] == receipt["events"]["last"] and receipt["chain"]["head"]
        refused = await desk.erasure(State.REFUSED, subject="bob")
        assert (await (await fetched(client, refused.id)).json())["result"]["state"] == "refused"


async def test_the_commitment_is_proved_with_salt_and_name_alone(tmp_path: Path, keys: Path) -> None:
    async with office() as (_, client, world):
        body = {"subject": "alice", "tenant": "acme", "basis": "gdpr_art17", "reference": "ticket 12"}
        answer = await client.post("/v1/erasures", json=body, headers=bearer(Role.PRIVACY))
        assert answer.status == 201, await answer.text()
        created = await answer.json()
        publish(keys, world.parts.erasures.keyring)
        receipt = await (await fetched(client, created["id"])).json()
        asked = await client.get(f"/v1/erasures/{created['id']}/receipt/salt", headers=bearer(Role.PRIVACY))
        salt = (await asked.json())["salt"]
        assert salt == created["receipt_salt"]
        named = {"subject": ["alice"], "tenant": ["acme"]}
        assert receipt["about"]["commitment"] == commit(bytes.fromhex(salt), named)
        about = ("--salt", salt, "--subject", "alice", "--tenant", "acme")
        assert verified(tmp_path, receipt, keys, *about).exit_code == 0
        for wrong in (("--salt", salt, "--subject", "alicia", "--tenant", "acme"),
                      ("--salt", salt, "--subject", "alice"),
                      ("--salt", "00" * 16, "--subject", "alice", "--tenant", "acme")):  # fmt: skip
            assert verified(tmp_path, receipt, keys, *wrong).exit_code == 1


async def test_what_is_no_receipt_is_said_to_be_none(tmp_path: Path, keys: Path) -> None:
    async with office() as (desk, client, world):
        erasure = await desk.erasure()
        receipt = await (await fetched(client, erasure.id)).json()
    publish(keys, world.parts.erasures.keyring)
    text = json.dumps(receipt)
    twice = text.replace('"sequence":', '"sequence": 1, "sequence":')
    for wrong in ("", "[]", "{}", "nonsense", text[:-1], twice,
                  text.replace(f'"sequence": {receipt["sequence"]}', '"sequence": 1.5'), "[" * 5000):
        assert verified(tmp_path, wrong, keys).exit_code == 1, wrong[:40]
    assert verified(tmp_path, text, tmp_path / "nowhere").exit_code == 2
    put(keys, "nonsense")
    assert verified(tmp_path, text, keys).exit_code == 2
    put(keys, json.dumps({"keys": [{"id": "signing-0", "algorithm": "Ed25519", "public": "00" * 32}]}))
    assert verified(tmp_path, text, keys).exit_code == 1


async def test_a_page_for_people_takes_nothing_for_mark_up() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure(State.LEAKING)
        await desk.acts.escalate(erasure.id, "eve", "<script>alert(1)</script>")
        answer = await fetched(client, erasure.id, Accept="text/html")
        text = await answer.text()
        assert answer.content_type == "text/html" and "default-src 'none'" in answer.headers[
            "Content-Security-Policy"]  # fmt: skip
        assert "<script>alert" not in text and "Receipt of an erasure" in text
        start = text.index('id="receipt">') + len('id="receipt">')
        inside = json.loads(text[start : text.index("</script>", start)])
        assert inside["erasure"] == erasure.id and inside["signature"]["value"]


async def test_who_may_have_one() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure()
        path = f"/v1/erasures/{erasure.id}/receipt"
        assert (await client.get(path)).status == 401
        assert (await client.get(path, headers=bearer(Role.VIEWER))).status == 403
        assert (await client.get(path + "/salt", headers=bearer(Role.VIEWER))).status == 403
        assert (await client.get("/v1/erasures/er_none/receipt", headers=bearer(Role.PRIVACY))).status == 404


def test_a_fraction_has_no_canonical_form() -> None:
    assert canonical({"b": [1, True, None], "a": "ü"}) == '{"a":"ü","b":[1,true,null]}'.encode()
    with pytest.raises(ValueError, match="fractions"):
        canonical({"a": [{"b": 1.0}]})


async def test_observe_mode_gives_none() -> None:
    async with office(policy="observe") as (desk, client, _):
        erasure = await desk.erasure()
        answer = await client.get(f"/v1/erasures/{erasure.id}/receipt", headers=bearer(Role.PRIVACY))
        assert answer.status == 409 and "observe" in (await answer.json())["detail"]


async def test_it_says_when_it_was_issued() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure()
        first = await (await fetched(client, erasure.id)).json()
        await desk.clock.advance(3600.0)
        second = await (await fetched(client, erasure.id)).json()
        at = [datetime.fromisoformat(each["issued_at"]) for each in (first, second)]
        assert (at[1] - at[0]).total_seconds() == 3600.0 and at[0].tzinfo == UTC
