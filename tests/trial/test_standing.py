"""An exemption holds only with a passing, unexpired trial of this profile; and what it shortens."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from quietus.core.states import State
from quietus.core.trial_conclusion import conclude_trial
from quietus.intents import terms_of
from quietus.legacy.faults import Faults
from quietus.policies import load_policy
from quietus.profiles.loader import find_profile, load_profile, parse_profile
from quietus.profiles.profile import Profile
from quietus.trials import (
    VOUCHED,
    Exemptions,
    TrialFault,
    TrialResult,
    found_trial,
    load_trial,
    standing,
    written,
)
from tests.trial.ground import Ground
from tests.virtual_clock import START
from tests.world import Silent, World

TOOL = load_profile("memory-tool")
DECLARED = TOOL.with_store(erasure_model="synchronous_transactional")
DAY = 86400.0
GOOD = TrialResult(
    "memory-tool", TOOL.mapping_fingerprint, START, START + 30 * DAY, True,
    frozenset({"synchronous_transactional", "sync_purge"}),
)  # fmt: skip


def changed(**fields: Any) -> TrialResult:
    return dataclasses.replace(GOOD, **fields)


def vouched(condition: str, expires: str = "2027-01-01") -> Profile:
    return TOOL.with_store(attestations=[{"condition": condition, "by": "ops", "expires": expires}])


@pytest.mark.requirement("R2", "R23", "R118", "R173")
@pytest.mark.parametrize(
    ("profile", "trial", "word"),
    [
        (TOOL, GOOD, "none_declared"),
        (DECLARED, None, "no_trial"),
        (DECLARED, TrialFault("x"), "unreadable_trial"),
        (DECLARED, changed(fingerprint="other"), "other_profile"),
        (DECLARED, changed(expires=START), "expired"),
        (DECLARED, changed(at=START + 1), "expired"),
        (DECLARED, changed(passed=False), "not_passed"),
        (DECLARED, changed(conditions=frozenset({"sync_purge"})), "not_passed"),
        (vouched("same_tombstone_index"), GOOD, "not_passed"),
        (vouched("sync_purge", "2026-01-01"), GOOD, "none_declared"),
        (vouched("no_derived_reads"), GOOD, "none_declared"),
        (DECLARED, GOOD, None),
        (vouched("sync_purge"), GOOD, None),
    ],
)
def test_what_is_not_shown_does_not_hold(
    profile: Profile, trial: TrialResult | TrialFault | None, word: str | None
) -> None:
    found = standing(profile, trial, START)
    assert found.holds == (word is None)
    assert word is None or found.word == word
    terms = terms_of(profile, load_policy("default"), exempt=found.holds)
    assert terms.settling_interval == (0.0 if word is None else 900.0)
    assert (terms.clean_rounds, terms.effectuation_bound) == (3, 1800.0)


async def test_a_trial_written_is_the_trial_read(tmp_path: Path) -> None:
    ground = Ground()
    seen = await ground.observe()
    text = written(TOOL, "http://store", seen, conclude_trial(seen), START, 30)
    file = tmp_path / "trial.json"
    file.write_text(text)
    assert standing(DECLARED, load_trial(file), START + 29 * DAY).holds
    assert not standing(DECLARED, load_trial(file), START + 30 * DAY).holds
    assert "quietus-canary" not in text and "acme" not in text


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{}", '{"kind": "Trial", "apiVersion": "quietus/v1"}', "[" * 9999]
)
def test_a_file_that_is_no_trial_is_refused_and_exempts_nothing(tmp_path: Path, text: str) -> None:
    file = tmp_path / "trial.json"
    file.write_text(text)
    fault = found_trial(file)
    assert isinstance(fault, TrialFault) and "quietus profile try" in str(fault)
    assert isinstance(found_trial(tmp_path / "none"), TrialFault) and found_trial(None) is None


def test_the_store_block_may_change_under_a_trial_and_nothing_else() -> None:
    text = find_profile("memory-tool").read_text()
    other = parse_profile(text.replace("settling_interval: 900s", "settling_interval: 800s"))
    assert other.fingerprint != TOOL.fingerprint and other.mapping_fingerprint == TOOL.mapping_fingerprint
    assert (
        parse_profile(text.replace("top_k: 50", "top_k: 5")).mapping_fingerprint != TOOL.mapping_fingerprint
    )


def test_a_change_of_standing_is_told_to_the_log_once() -> None:
    log, now = Silent(), [START]
    exemptions = Exemptions(lambda: DECLARED, lambda: GOOD, lambda: now[0], log)
    assert exemptions.now().holds and exemptions.now().holds
    now[0] += 31 * DAY
    assert not exemptions.now().holds and not exemptions.now().holds
    assert [(event, facts["reason"]) for event, facts in log.lines] == [
        ("exemption_holds", "synchronous_transactional"), ("exemption_refused", "expired"),
    ]  # fmt: skip


ALL = changed(conditions=frozenset({"synchronous_transactional", *VOUCHED}))


@pytest.mark.requirement("R2", "R139", "R159", "R173", "R174")
@pytest.mark.parametrize(
    ("profile", "trial", "least", "most"),
    [
        (DECLARED, GOOD, 0.0, 60.0),
        (DECLARED, None, 900.0, 1000.0),
        *((vouched(condition), ALL, 0.0, 60.0) for condition in VOUCHED),
        *((vouched(condition), None, 900.0, 1000.0) for condition in VOUCHED),
    ],
)
async def test_an_exemption_shortens_the_wait_and_skips_no_probe(
    profile: Profile, trial: TrialResult | None, least: float, most: float
) -> None:
    async with World(profile=profile) as world:
        world.parts.active.trial = trial
        await world.write("a1", "Alice lives at 12 Elm Street in Lisbon", "alice", tenant="acme")
        await world.write("b1", "Bob likes green tea in the morning", "bob", tenant="acme")
        began = world.clock.monotonic()
        await world.call("POST", "/v1/forget", {"tenant": "acme", "subject": "alice"})
        (erasure,) = world.parts.erasures.gate.erasures.values()
        # Until then the scope is this erasure's alone, whoever vouches for what: no write goes into it.
        assert (await world.write("a2", "Alice is back", "alice", tenant="acme")).status == 409
        while world.parts.erasures.gate.erasures[erasure.id].state is not State.SETTLED:
            await world.clock.advance(1.0)
            assert world.clock.monotonic() - began < most
        settled = world.parts.erasures.gate.erasures[erasure.id]
        assert world.clock.monotonic() - began >= least
        assert settled.terms.settling_interval == (0.0 if trial else 900.0)
        assert settled.clean_streak >= 3 and settled.snapshot["witnesses"] == 1


@pytest.mark.requirement("R2")
async def test_a_store_that_leaks_under_an_exemption_is_still_found_out() -> None:
    async with World(Faults(lazy_index=40.0), profile=DECLARED) as world:
        world.parts.active.trial = GOOD
        await world.write("a1", "Alice lives at 12 Elm Street in Lisbon", "alice", tenant="acme")
        await world.write("b1", "Bob likes green tea in the morning", "bob", tenant="acme")
        await world.call("POST", "/v1/forget", {"tenant": "acme", "subject": "alice"})
        await world.clock.advance(30.0)
        (erasure,) = world.parts.erasures.gate.erasures.values()
        assert erasure.state is State.LEAKING
        seen = await world.call("POST", "/v1/recall", {"query": "Elm Street", "tenant": "acme"})
        assert "Elm" not in str(seen.body)


@pytest.mark.requirement("R2", "R173")
def test_a_leak_after_the_trial_refutes_it_and_a_newer_trial_does_not_mind() -> None:
    assert standing(DECLARED, GOOD, START, leaked_at=GOOD.at - 1.0).holds
    assert standing(DECLARED, GOOD, START, leaked_at=GOOD.at).word == "refuted"
    again = changed(at=START + 10.0)
    assert standing(DECLARED, again, START + 11.0, leaked_at=START + 9.0).holds


@pytest.mark.requirement("R2")
async def test_a_leak_takes_the_exemption_away_from_whom_it_was_seen_of_and_from_everybody_after() -> None:
    async with World(Faults(lazy_index=40.0), profile=DECLARED) as world:
        world.parts.active.trial = GOOD
        await world.write("a1", "Alice lives at 12 Elm Street in Lisbon", "alice", tenant="acme")
        await world.write("c1", "Carol keeps bees on the roof of the town hall", "carol", tenant="acme")
        await world.write("b1", "Bob likes green tea in the morning", "bob", tenant="acme")
        assert world.parts.exemptions.now().holds
        await world.call("POST", "/v1/forget", {"tenant": "acme", "subject": "alice"})
        assert world.erasure().terms.settling_interval == 0.0
        await world.clock.advance(10.0)
        assert world.erasure().first_leak_at is not None
        assert world.parts.exemptions.now().word == "refuted"
        assert world.erasure().terms.settling_interval == 900.0, "the wait is back"
        began = world.clock.monotonic()
        await world.until(lambda: world.erasure().state is State.SETTLED, 1200.0)
        assert world.clock.monotonic() - began >= 900.0
        await world.call("POST", "/v1/forget", {"tenant": "acme", "subject": "carol"})
        assert world.erasure().terms.settling_interval == 900.0
        # A restart forgets nothing of it: the ledger has it.
        await world.crash()
        await world.ledger.close()
        async with World(
            profile=DECLARED, upstream=world.upstream, ledger=world.ledger, keyring=world.keyring,
            clock=world.clock, seed=9,
        ) as again:  # fmt: skip
            again.parts.active.trial = GOOD
            assert again.parts.exemptions.now().word == "refuted"
            assert again.erasure(0).terms.settling_interval == 900.0


@pytest.mark.requirement("R2")
async def test_a_trial_that_expires_under_way_shortens_nothing_any_more() -> None:
    async with World(profile=DECLARED) as world:
        now = world.clock.now()
        world.parts.active.trial = changed(at=now - DAY, expires=now + 0.5)
        await world.write("a1", "Alice lives at 12 Elm Street in Lisbon", "alice", tenant="acme")
        await world.write("b1", "Bob likes green tea in the morning", "bob", tenant="acme")
        await world.call("POST", "/v1/forget", {"tenant": "acme", "subject": "alice"})
        assert world.erasure().terms.settling_interval == 0.0
        await world.clock.advance(60.0)
        assert world.erasure().terms.settling_interval == 900.0
        assert world.erasure().state is State.SETTLING


async def test_a_reload_makes_what_is_unsettled_wait_longer_and_never_shorter() -> None:
    async with World() as world:
        await world.write("a1", "Alice lives at 12 Elm Street in Lisbon", "alice", tenant="acme")
        await world.call("POST", "/v1/forget", {"tenant": "acme", "subject": "alice"})
        before = world.erasure().terms
        for interval, rounds in ((2000.0, 5), (10.0, 1)):
            profile = world.parts.active.profile
            world.parts.active.profile = profile.with_store(
                settling_interval=interval, effectuation_bound=4000.0, clean_rounds=rounds
            )
            await world.clock.advance(120.0)
            terms = world.erasure().terms
            assert (terms.settling_interval, terms.clean_rounds) == (2000.0, 5)
        assert before.settling_interval == 900.0
