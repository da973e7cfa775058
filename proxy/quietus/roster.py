"""Who shares the ledger, and who is gone, as one replica can tell it: by its own clock alone.

A replica that renews counts its lease from before it asked. Whoever watches counts from after it has seen a
new beat, and compares only times of its own clock: so a member counts as gone later than it has stopped to
answer, whatever the clocks of machines and servers say or do.
"""

from __future__ import annotations

from quietus.core.erasure import Erasure
from quietus.ports import Member, Muster


class Roster:
    """What one replica has seen of the others. Times are its own monotonic seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._beats: dict[str, tuple[int, float]] = {}
        self._asked_at = 0.0
        self._life = ""
        self._blind_until: float | None = None
        self.members: tuple[Member, ...] = ()

    def saw(self, muster: Muster, asked_at: float, answered_at: float) -> None:
        """Takes in what a renewal returned that was asked for and answered at these times."""
        if asked_at < self._asked_at:
            return  # a later one was answered before
        self._asked_at = asked_at
        self.members = muster.members
        beats = {}
        for member in muster.members:
            known = self._beats.get(member.session)
            same = known is not None and known[0] == member.beat
            beats[member.session] = known if known is not None and same else (member.beat, answered_at)
        self._beats = beats
        if muster.life == muster.settled_life:
            self._blind_until = None
        elif muster.life != self._life:
            longest = max((member.seconds for member in muster.members), default=0.0)
            self._blind_until = answered_at + max(longest, self._seconds)
        self._life = muster.life

    @property
    def life(self) -> str:
        """The life of the server that was seen last."""
        return self._life

    def blind(self) -> bool:
        """Whether a member may live that is not in the roster: the server has lost something of late."""
        return self._blind_until is not None and self._asked_at < self._blind_until

    def recovered(self) -> bool:
        """Whether the server lives another life than before, and everybody has had the time to join anew."""
        return self._blind_until is not None and self._asked_at >= self._blind_until

    def gone(self, member: Member) -> bool:
        """Whether its lease has surely lapsed. One that has left meanwhile is nobody's to expel."""
        known = self._beats.get(member.session)
        if known is None:
            return False
        beat, since = known
        return beat == member.beat and self._asked_at - since >= member.seconds

    def unread(self, number: int, but: str) -> list[Member]:
        """The members, except one, that have not read the ledger up to an event."""
        return [member for member in self.members if member.session != but and member.number < number]

    def behind(self, erasure: Erasure, but: str) -> list[Member]:
        """The members, except one, that do not gate on an erasure as it stands, or have not drained."""
        return [
            member
            for member in self.members
            if member.session != but
            and (member.number < erasure.version or erasure.epoch in member.undrained)
        ]
