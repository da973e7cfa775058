"""What an erasure keeps of leaks, epochs and terms when they come in an unusual order."""

from __future__ import annotations

from dataclasses import asdict

from quietus.core.events import EventType as E
from tests.core.making import Story


def test_exposure_needs_both_ends_and_is_never_negative() -> None:
    story = Story()
    story.then(E.LEAKED, at=1100.0)
    assert story.erasure.exposure_seconds is None, "nobody had acknowledged anything"
    story.then(E.ACCEPTED, at=1200.0)
    assert story.erasure.exposure_seconds == 0.0, "met before it was acknowledged"
    assert Story().then(E.ACCEPTED).exposure_seconds is None, "no leak was seen"


def test_a_lower_epoch_of_a_repeated_acknowledgement_lowers_nothing() -> None:
    story = Story()
    story.acknowledged(epoch=7)
    story.then(E.FORWARDED)
    assert story.then(E.ACCEPTED, epoch=5).store_epoch == 7
    story.then(E.FORWARDED)
    assert story.then(E.ACCEPTED, epoch=9).store_epoch == 9


def test_terms_of_what_is_unsettled_only_get_harder() -> None:
    story = Story()
    story.acknowledged()
    story.round()
    harder = {**asdict(story.erasure.terms), "settling_interval": 5000.0, "clean_rounds": 1}
    erasure = story.then(E.RESTARTED, cause="terms", terms=harder)
    assert (erasure.terms.settling_interval, erasure.clean_streak) == (5000.0, 0)
    assert erasure.terms.clean_rounds == Story().erasure.terms.clean_rounds
    before = erasure.terms
    assert story.then(E.RESTARTED, cause="reconnect").terms == before
    settled = story.then(E.CLEAN)
    assert story.then(E.RESTARTED, terms={**harder, "settling_interval": 9000.0}).terms == settled.terms
