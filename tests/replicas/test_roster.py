"""Who is gone: told by one's own clock, later than they have stopped to answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quietus.ports import Head, Member, Muster
from quietus.roster import Roster
from tests.core.making import Story

HEAD = Head("i", 0, "", 0)


def muster(*members: Member, life: str = "one", settled: str = "one") -> Muster:
    return Muster(HEAD, members, life, settled)


def member(session: str, beat: int, number: int = 9, seconds: float = 10.0, **more: object) -> Member:
    return Member(session, beat, number, seconds, **more)  # type: ignore[arg-type]


@pytest.mark.requirement("R209", "R208")
def test_a_member_is_gone_when_its_beat_stood_still_for_its_whole_lease() -> None:
    roster = Roster(10.0)
    roster.saw(muster(member("b", 1)), 100.0, 100.5)
    roster.saw(muster(member("b", 1)), 110.4, 110.9)
    assert not roster.gone(member("b", 1)), "the answer of the first look came at 100.5"
    roster.saw(muster(member("b", 1)), 110.5, 111.0)
    assert roster.gone(member("b", 1))
    roster.saw(muster(member("b", 2)), 120.0, 120.1)
    assert not roster.gone(member("b", 2)), "it beats again"


def test_a_longer_lease_of_another_is_respected() -> None:
    roster = Roster(1.0)
    roster.saw(muster(member("b", 1, seconds=60.0)), 0.0, 0.0)
    roster.saw(muster(member("b", 1, seconds=60.0)), 59.9, 60.0)
    assert not roster.gone(member("b", 1, seconds=60.0))


def test_one_that_slept_looks_again_before_it_judges() -> None:
    """The look that counts is begun after the lease has passed; an older one says nothing."""
    roster = Roster(10.0)
    roster.saw(muster(member("b", 1)), 0.0, 0.1)
    roster.saw(muster(member("b", 1)), 0.2, 5000.0)
    assert not roster.gone(member("b", 1))


def test_an_answer_that_was_overtaken_is_dropped() -> None:
    roster = Roster(10.0)
    roster.saw(muster(member("b", 2)), 5.0, 5.1)
    roster.saw(muster(member("b", 1), member("c", 1)), 4.0, 6.0)
    assert roster.members == (member("b", 2),)


def test_behind_is_who_has_not_read_so_far_or_not_drained() -> None:
    roster = Roster(10.0)
    asked = replace(Story().erasure, epoch=5, version=7)
    ready, unread = member("ready", 1, 7), member("unread", 1, 6)
    busy, elsewhere = member("busy", 1, 9, undrained=(5,)), member("elsewhere", 1, 9, undrained=(3,))
    roster.saw(muster(ready, unread, busy, elsewhere, member("me", 1, 0)), 0.0, 0.0)
    assert roster.behind(asked, "me") == [unread, busy]


def test_after_another_life_of_the_server_a_lease_is_waited_for() -> None:
    roster = Roster(10.0)
    roster.saw(muster(member("b", 1, seconds=20.0)), 0.0, 0.0)
    assert not roster.blind() and not roster.recovered()
    roster.saw(muster(life="two"), 1.0, 2.0)
    roster.saw(muster(life="two"), 11.9, 12.0)
    assert roster.blind(), "a member may live that the server has lost"
    roster.saw(muster(life="two"), 12.0, 12.1)
    assert not roster.blind() and roster.recovered()
    roster.saw(muster(life="two", settled="two"), 13.0, 13.1)
    assert not roster.blind() and not roster.recovered()


def test_a_member_that_has_left_meanwhile_is_nobodys_to_expel() -> None:
    roster = Roster(1.0)
    roster.saw(muster(member("b", 1, seconds=1.0), member("c", 1, seconds=1.0)), 0.0, 0.0)
    before = roster.members
    roster.saw(muster(member("c", 1, seconds=1.0)), 5.0, 5.0)
    assert [m.session for m in before if roster.gone(m)] == ["c"], "b went while c was being expelled"
