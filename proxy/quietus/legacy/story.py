"""The steps of the demo, in words that a privacy officer follows, each checked on what was answered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from rich.text import Text

from quietus.legacy.agent import Agent, Heard, Office
from quietus.legacy.telling import Telling
from quietus.ports import Clock

ABOUT_ALICE: Final = {
    "alice-1": "Contact details for Alice Moreau: 14 Quai Voltaire, phone 0655 501 234",
    "alice-2": "Alice Moreau is allergic to penicillin and carries an adrenaline pen",
    "alice-3": "Alice Moreau asked to move her appointment with Doctor Okafor to Thursday",
}
ABOUT_BOB: Final = {
    "bob-1": "Bob Keller can be reached at the reception desk, extension 12",
    "bob-2": "Bob Keller takes the early train and prefers a window seat",
}
MARKS: Final = ("Moreau", "Quai Voltaire", "0655 501 234", "penicillin", "Okafor")
QUESTION: Final = "contact details"


@dataclass(frozen=True, slots=True)
class Cast:
    """Who takes part."""

    direct: Agent
    through: Agent
    office: Office


class Story:
    """One run of the story."""

    def __init__(self, telling: Telling, cast: Cast, clock: Clock, poll: float, patience: float) -> None:
        self._say = telling
        self._cast = cast
        self._clock = clock
        self._poll = poll
        self._end = clock.monotonic() + patience
        self._leaks_direct = 0
        self._leaks_through = 0
        self._lost_bystanders = 0
        self._asked = 0

    async def tell(self) -> None:
        """All of it."""
        self._say.opening(
            "Quietus",
            "An assistant keeps memories about Alice and Bob in a memory service. Alice asks to be "
            "forgotten.\nOn the left: the memory service, asked directly. On the right: the same service, "
            "with the Quietus sidecar in front. Neither the assistant nor the service was changed.",
        )
        await self._remember()
        erasure = await self._forget()
        await self._moment_later()
        await self._after_compaction()
        await self._until_settled(erasure)
        await self._settled(erasure)

    async def _remember(self) -> None:
        self._say.chapter(
            "The assistant remembers",
            "It writes three memories about Alice and two about Bob, through Quietus.",
        )
        stored = [await self._cast.through.remember(key, text, "alice") for key, text in ABOUT_ALICE.items()]
        stored += [await self._cast.through.remember(key, text, "bob") for key, text in ABOUT_BOB.items()]
        direct, through = await self._both()
        self._say.sides(self._say.memories(direct.rows), self._say.memories(through.rows))
        self._say.check(all(heard.status == 201 for heard in stored), "all five memories were stored")
        self._say.check(
            direct.text == through.text and through.tells(MARKS),
            "as long as nobody asks to be forgotten, Quietus changes nothing: both answers are the same",
        )

    async def _forget(self) -> str:
        self._say.chapter("Alice asks to be forgotten", "The assistant passes it on, through Quietus.")
        began = self._clock.monotonic()
        heard = await self._cast.through.forget("alice")
        took = self._clock.monotonic() - began
        marked = heard.headers.get("Quietus-Erasure", "")
        name = re.match(r'"([^"]+)"', marked)
        claim = heard.document
        row = await self._cast.direct.read("alice-1")
        self._say.sides(
            [
                f"says: “{claim.get('status')}”, {claim.get('keys')} memories. A promise, not a proof.",
                f"reading one of them by its key: {'not found' if row.status == 404 else row.status}",
            ],
            [
                f"passes that on, and adds: accepted, not settled yet ({heard.said}).",
                f"remembers the erasure as {name[1] if name else 'nothing'}",
                f"this took {took * 1000:.0f} ms",
            ],
        )
        self._say.check(
            claim.get("status") == "erased" and row.status == 404,
            "the store claims that everything is erased, and its own row is indeed gone",
        )
        self._say.check(
            heard.status == 202 and name is not None,
            "Quietus does not call it done: it keeps an open erasure",
        )
        return name[1] if name else ""

    async def _moment_later(self) -> None:
        self._say.chapter(
            "A moment later: a question about Alice",
            "The store forgot the rows. Its search index has not been compacted yet and still finds her.",
        )
        direct = await self._cast.direct.recall(QUESTION, "alice")
        through = await self._cast.through.recall(QUESTION, "alice")
        reason = through.document.get("reason")
        self._say.sides(self._say.memories(direct.rows), [*_refusal(through)])
        self._say.check(direct.tells(MARKS), "the store still serves what it calls erased (its search index)")
        self._say.check(
            through.status == 409 and reason == "ERASURE_EPOCH_NOT_SETTLED" and not through.tells(MARKS),
            "Quietus refuses: nobody has shown yet that she cannot be found",
        )
        self._say.chapter(
            "A moment later: a question about everybody",
            "A wider question would bring Alice back by the way: from the index, and from the digest that a "
            "service account keeps for analytics and that quotes her.",
        )
        direct, through = await self._both()
        self._say.sides(self._say.memories(direct.rows), self._say.memories(through.rows))
        digests = [row for row in direct.rows_telling(MARKS) if row.get("subject") == "service:analytics"]
        self._say.check(
            bool(digests), "the store serves a digest about her, under another name (service:analytics)"
        )
        self._say.check(
            through.status == 200 and not through.tells(MARKS) and _bystanders(through),
            "through Quietus: nothing of Alice, everything of Bob",
        )
        self._say.check(
            "contaminated" in through.headers.get("Quietus-Candidate-Set", ""),
            "and the answer says that it was screened",
        )
        again = await self._cast.through.remember("alice-4", "Alice called again", "alice")
        self._say.check(again.status == 409, "a new memory about Alice is not let in behind her back")

    async def _after_compaction(self) -> None:
        self._say.chapter(
            "A few seconds later: the index is compacted",
            "Now the store's search about Alice is empty. Whoever looks only there would call it done.",
        )
        await self._wait_for_compaction()
        direct, through = await self._both()
        self._say.sides(self._say.memories(direct.rows), self._say.memories(through.rows))
        chunks = [row for row in direct.rows_telling(MARKS) if row.get("subject") is None]
        self._say.check(
            bool(chunks), "the store still serves her words from a cache of text chunks, with no name on them"
        )
        self._say.check(
            through.status == 200 and not through.tells(MARKS) and _bystanders(through),
            "through Quietus: still nothing of Alice, everything of Bob",
        )

    async def _wait_for_compaction(self) -> None:
        with self._say.console.status("waiting for the store's compaction …"):
            while self._clock.monotonic() < self._end:
                alone = await self._cast.direct.recall(QUESTION, "alice")
                if not alone.tells(MARKS):
                    return
                await self._clock.sleep(self._poll / 2)

    async def _until_settled(self, erasure: str) -> None:
        self._say.chapter(
            "Quietus keeps asking",
            "It asks the store again and again, in every way it can be asked, until several rounds in a row "
            "find nothing of Alice while they do find what they should.",
        )
        known: dict[str, Any] = {}
        shown = ""
        with self._say.console.status("waiting for the erasure to be settled …") as waiting:
            while self._clock.monotonic() < self._end:
                await self._watch()
                known = await self._cast.office.erasure(erasure) if erasure else {}
                state = str(known.get("state", "unknown"))
                if state != shown:
                    self._say.console.print(Text(f"   {_plainly(state)}"))
                    shown = state
                if state == "settled":
                    break
                waiting.update(f"{state}: {known.get('why') or 'still asking'}")
                await self._clock.sleep(self._poll)
        self._say.sides(
            [f"told of Alice in {self._leaks_direct} of {self._asked} questions since"],
            [
                f"told of Alice in {self._leaks_through} of {self._asked}; "
                f"Bob missing in {self._lost_bystanders}"
            ],
        )
        self._say.check(known.get("state") == "settled", "the erasure is settled")
        self._say.check(
            self._leaks_through == 0 and self._lost_bystanders == 0 and self._asked > 0,
            "until then not one answer through Quietus told of Alice, and none lost Bob",
        )

    async def _watch(self) -> None:
        direct, through = await self._both()
        self._asked += 1
        self._leaks_direct += direct.tells(MARKS)
        self._leaks_through += through.tells(MARKS)
        self._lost_bystanders += not _bystanders(through)

    async def _settled(self, erasure: str) -> None:
        self._say.chapter(
            "Settled", "Now questions about Alice are answered again, and truthfully: with nothing."
        )
        direct = await self._cast.direct.recall(QUESTION, "alice")
        through = await self._cast.through.recall(QUESTION, "alice")
        wide_direct, wide_through = await self._both()
        self._say.sides(
            self._say.memories(direct.rows) + self._say.memories(wide_direct.rows),
            self._say.memories(through.rows) + self._say.memories(wide_through.rows),
        )
        self._say.check(
            through.status == 200 and not through.rows,
            "a question about Alice is answered, and finds nothing",
        )
        self._say.check(
            not wide_direct.tells(MARKS) and not wide_through.tells(MARKS) and _bystanders(wide_through),
            "nothing of Alice is left on either side, and everything of Bob is there",
        )
        known = await self._cast.office.erasure(erasure) if erasure else {}
        through_names = known.get("through") or []
        doors = ", ".join(map(str, through_names)) or "nothing"
        unchecked = ", ".join(_unchecked(known)) or "nothing is named"
        told = f"Not recallable through: {doors}. Verdict: {known.get('verdict')}. Not checked: {unchecked}."
        self._say.console.print(Text(f"   {told}"))
        self._say.check(
            known.get("may_assert_non_recallability") is True and bool(through_names),
            "Quietus names through which doors this was shown",
        )

    async def _both(self) -> tuple[Heard, Heard]:
        return await self._cast.direct.recall(QUESTION), await self._cast.through.recall(QUESTION)


def _bystanders(heard: Heard) -> bool:
    """Whether all of Bob's memories are there."""
    return set(ABOUT_BOB) <= {str(row.get("key")) for row in heard.rows}


def _refusal(heard: Heard) -> list[Text]:
    document = heard.document
    told = document.get("detail") or document.get("title") or "no answer to read"
    return [
        Text(f"refused ({heard.said})", style="bold green"),
        Text(str(document.get("reason", "")), style="green"),
        Text(str(told)),
    ]


def _plainly(state: str) -> str:
    said = {
        "requested": "… the wish is on record; the store is being asked",
        "settling": "… the store says yes; Quietus waits and asks",
        "leaking": "! Quietus found Alice in the store after it had said “erased”; it goes on",
        "violation": "! the store still told of Alice after its own deadline",
        "settled": "✓ several rounds in a row found nothing",
    }
    return said.get(state, f"… {state}")


def _unchecked(known: dict[str, Any]) -> list[str]:
    surfaces = known.get("surfaces") or []
    return [
        str(surface.get("name"))
        for surface in surfaces
        if isinstance(surface, dict) and surface.get("outcome") in ("OUT_OF_SCOPE", "UNPROBED")
    ]
