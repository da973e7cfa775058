"""The legal date: counted from the day of receipt, by the law that the basis names, extended once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from quietus.core.dossier import Dossier, dossier_of, law_of


def at(day: str) -> float:
    return datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()


@pytest.mark.requirement("R107")
@pytest.mark.parametrize(
    ("basis", "received", "due", "extended"),
    [
        ("gdpr_art17", "2026-01-31", "2026-02-28", "2026-04-30"),
        ("gdpr_art17", "2027-11-30", "2027-12-30", "2028-02-29"),
        ("GDPR-Art-17", "2026-11-10", "2026-12-10", "2027-02-10"),
        ("gdpr_art17", "2026-12-31", "2027-01-31", "2027-03-31"),
        ("ccpa_1798_105", "2026-01-01", "2026-02-15", "2026-04-01"),
        ("", "2026-01-31", "2026-02-28", "2026-04-30"),
    ],
)
def test_the_date_follows_the_law(basis: str, received: str, due: str, extended: str) -> None:
    dossier = Dossier(basis, received_at=at(received))
    assert dossier.due_at(at("2030-01-01")) == at(due)
    assert dossier.longer().due_at(at("2030-01-01")) == at(extended)
    assert dossier.longer().longer() == dossier.longer()


def test_without_a_day_of_receipt_it_is_the_day_of_the_request() -> None:
    assert Dossier("gdpr").due_at(at("2026-03-05")) == at("2026-04-05")


@pytest.mark.parametrize(
    ("basis", "law"),
    [("ccpa", "ccpa"), ("us_ccpa", "ccpa"), ("CCPA-1798", "ccpa"), ("gdpr17", "gdpr"), ("unclear", "gdpr")],
)
def test_an_unknown_law_has_the_shorter_period(basis: str, law: str) -> None:
    assert law_of(basis) == law


def test_facts_of_an_older_ledger_say_less() -> None:
    assert dossier_of({}) == Dossier()
    assert dossier_of({"basis": None, "received_at": 5}).received_at == 5.0
