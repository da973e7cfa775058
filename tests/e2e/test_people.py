"""What people do, with the commands that docs/people.md and docs/receipts.md have, against a real sidecar."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from quietus.cli import app
from quietus.legacy.faults import Faults
from tests.e2e.process import Quietus, shipped
from tests.e2e.stores import Served

SUBJECT = "alice.moreau@example.org"


class Operator:
    """Somebody at a terminal."""

    def __init__(self, sidecar: Quietus) -> None:
        self._sidecar = sidecar

    def run(self, *words: str) -> Result:
        """A command of the admin API, as it ends."""
        asked = ("--admin", self._sidecar.admin.removeprefix("http://"),
                 "--token-file", str(self._sidecar.folder / "admin.token"))  # fmt: skip
        return CliRunner().invoke(app, [*words, *asked])

    def json(self, *words: str) -> Any:
        """The same with `--json`; it must succeed."""
        found = self.run(*words, "--json")
        assert found.exit_code == 0, found.output
        return json.loads(found.output)


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Quietus]:
    store = Served(Faults())
    folder = tmp_path / "sidecar"
    folder.mkdir()
    profile = shipped("memory-tool", folder, settling_interval="1s", effectuation_bound="60s")
    settings = {"limits": {"probe_rate_per_second": 200}}
    running = Quietus(folder, store.url, str(profile), settings).start()
    yield running
    running.stop()
    store.close()


@pytest.mark.requirement("R68", "R69")
def test_a_demand_a_receipt_and_its_proof(sidecar: Quietus, tmp_path: Path) -> None:
    office = Operator(sidecar)
    text = "keeps the spare key under the third pot"
    body = {"key": "m-1", "value": text, "retention": {"subject": SUBJECT}}
    assert sidecar.call("POST", "/v1/memories", body).status == 201
    created = office.json(
        "erasures", "create", "--subject", SUBJECT, "--basis", "gdpr_art17", "--reference", "ticket-4711"
    )
    assert sidecar.call("POST", "/v1/recall", {"query": "key", "subject": SUBJECT}).status == 409
    watched = office.run("erasures", "watch", created["id"])
    assert watched.exit_code == 0, watched.output
    receipt, keys = tmp_path / "receipt.json", tmp_path / "keys.json"
    receipt.write_text(office.run("receipt", "get", created["id"]).output)
    config = tmp_path / "of.json"
    config.write_text((sidecar.folder / "quietus.json").read_text())
    listed = CliRunner().invoke(app, ["keys", "list", "--config", str(config), "--json"])
    assert listed.exit_code == 0, listed.output
    keys.write_text(listed.output)
    verify = ["receipt", "verify", str(receipt), "--public-key", str(keys)]
    said = CliRunner().invoke(app, verify)
    assert said.exit_code == 0 and "settled" in said.output, said.output
    proof = ["--salt", created["receipt_salt"], "--subject", SUBJECT]
    assert CliRunner().invoke(app, [*verify, *proof]).exit_code == 0
    assert CliRunner().invoke(app, [*verify, *proof[:-1], "bob"]).exit_code == 1
    receipt.write_text(receipt.read_text().replace("settled", "unsettled"))
    assert CliRunner().invoke(app, verify).exit_code == 1
    page = office.run("receipt", "get", created["id"], "--html").output
    assert "<!doctype html>" in page and SUBJECT not in page
    sidecar.stop()
    raw = b"".join(path.read_bytes() for path in sidecar.folder.glob("ledger*"))
    assert SUBJECT.encode() not in raw and b"third pot" not in raw and SUBJECT not in sidecar.log()
    with sqlite3.connect(sidecar.folder / "ledger.db") as ledger:
        assert ledger.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = CliRunner().invoke(app, ["ledger", "verify", str(sidecar.folder / "ledger.db")])
    assert found.exit_code == 0, found.output


@pytest.mark.requirement("R207")
def test_a_hold_waits_through_a_kill_and_is_lifted(sidecar: Quietus) -> None:
    office = Operator(sidecar)
    until = (datetime.now(UTC) + timedelta(days=30)).isoformat(timespec="seconds")
    placed = office.json(
        "holds", "place", "--subject", SUBJECT, "--exception", "gdpr_art17_3_e", "--until", until,
        "--reason", "case 12",
    )  # fmt: skip
    refused = sidecar.call("POST", "/v1/forget", {"subject": SUBJECT})
    assert (refused.status, refused.json["reason"]) == (409, "LEGAL_HOLD")
    sidecar.kill()
    sidecar.start()
    office = Operator(sidecar)
    assert [one["waiting"] for one in office.json("holds", "list")["holds"]] == [1]
    listed = office.run("holds", "list").output
    assert "case 12" in listed and "waiting" in listed
    assert office.run("holds", "lift", placed["id"], "--reason", "over").exit_code == 0
    (erasure,) = office.json("erasures", "list")["erasures"]
    assert office.run("erasures", "watch", erasure["id"]).exit_code == 0
    assert office.run("holds", "lift", placed["id"], "--reason", "over").exit_code == 1


@pytest.mark.requirement("R195")
def test_break_glass_and_a_quarantine(sidecar: Quietus) -> None:
    office = Operator(sidecar)
    body = {"key": "m-1", "value": "a page of the diary", "scope": "org/team"}
    assert sidecar.call("POST", "/v1/memories", body).status == 201
    placed = office.json("quarantines", "place", "--path", "org/team", "--reason", "under review")
    inside = {"query": "diary", "scope": "org/team"}
    assert sidecar.call("POST", "/v1/recall", inside).status == 409
    begun = office.json("override", "--for", "60m", "--reason", "incident 12")
    passed = sidecar.call("POST", "/v1/recall", inside)
    assert passed.status == 200 and b"diary" in passed.body
    assert passed.headers["quietus-candidate-set"] == "contaminated"
    assert office.run("overrides", "end", begun["id"], "--reason", "over").exit_code == 0
    assert sidecar.call("POST", "/v1/recall", inside).status == 409
    assert office.run("quarantines", "lift", placed["id"], "--reason", "reviewed").exit_code == 0
    assert sidecar.call("POST", "/v1/recall", inside).status == 200


@pytest.mark.requirement("R29", "R30", "R107", "R122", "R123")
def test_what_may_be_said_of_an_erasure_and_of_its_repeats(sidecar: Quietus) -> None:
    office = Operator(sidecar)
    body = {"key": "m-1", "value": "keeps a key under the third pot", "retention": {"subject": SUBJECT}}
    assert sidecar.call("POST", "/v1/memories", body).status == 201
    other = {"key": "m-2", "value": "takes the early morning train", "retention": {"subject": "somebody"}}
    assert sidecar.call("POST", "/v1/memories", other).status == 201
    answers = [sidecar.call("POST", "/v1/forget", {"subject": SUBJECT}) for _ in range(3)]
    assert {answer.status for answer in answers} == {202}, "the same acknowledgement, three times"
    (open_now,) = office.json("erasures", "list")["erasures"]
    assert (open_now["client_calls"], open_now["upstream_calls"]) == (3, 1)
    due = datetime.fromisoformat(open_now["due_at"]) - datetime.fromisoformat(open_now["requested_at"])
    assert due >= timedelta(days=28), "one month, from when it was asked for"
    assert open_now["may_assert_erasure"] and not open_now["may_assert_non_recallability"]
    refused = sidecar.call("POST", "/v1/recall", {"query": "key", "subject": SUBJECT})
    assert refused.status == 409 and int(refused.headers["retry-after"]) > 0
    status = sidecar.call("GET", f"/.well-known/quietus/erasures/{open_now['id']}")
    assert status.status == 200 and status.json["state"] == open_now["state"] and status.json["why"]
    assert office.run("erasures", "watch", open_now["id"]).exit_code == 0
    settled = office.json("erasures", "show", open_now["id"])
    assert settled["may_assert_erasure"] and settled["may_assert_non_recallability"]


@pytest.mark.requirement("R11", "R12")
def test_a_key_is_no_person(sidecar: Quietus) -> None:
    office = Operator(sidecar)
    body = {"key": "m-1", "value": "keeps a key under the third pot", "retention": {"subject": SUBJECT}}
    assert sidecar.call("POST", "/v1/memories", body).status == 201
    answer = sidecar.call("POST", "/v1/forget", {"keys": ["m-1"], "basis": "gdpr_art17"})
    assert answer.status == 202 and "verdict=partial" in answer.headers["quietus-erasure"], answer.headers
    (erasure,) = office.json("erasures", "list")["erasures"]
    assert "key" in erasure["predicate"] and "subject" not in erasure["predicate"]
    assert office.json("erasures", "list", "--subject", SUBJECT)["erasures"] == [], "nobody was erased"
    again = {"key": "m-2", "value": "likes oysters in the new year", "retention": {"subject": SUBJECT}}
    assert sidecar.call("POST", "/v1/memories", again).status == 201
