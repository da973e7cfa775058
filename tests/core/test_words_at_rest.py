"""Words that lie in ledgers, in lineage files and in what people were shown: none may change its letters."""

from __future__ import annotations

from enum import Enum

import pytest

from quietus.core.events import EventType
from quietus.core.lineage import Detector
from quietus.core.probing import Failure
from quietus.core.severance import Fate
from quietus.core.soundness import Rating

WORDS: dict[type[Enum], str] = {
    EventType: """accepted refused unclear clean leaked leaked_late retried released requested snapshotted
        forwarded round restarted remedied overdue watch_ended collected write_opened write_closed readmitted
        signalled escalated extended held hold_lifted deferred overridden quarantined quarantine_lifted
        verify_asked keys_bound accessed""",
    Detector: "declared containment quote search",
    Failure: "MISSING_DELETE ORDERING PROPAGATION RESURRECTION UNKNOWN",
    Fate: "gone cascade unlink escalate dismissed",
    Rating: "SOUND UNSOUND UNKNOWN",
}  # fmt: skip


@pytest.mark.parametrize("kind", WORDS, ids=lambda kind: str(kind.__name__))
def test_what_was_written_with_these_words_is_read_with_them(kind: type[Enum]) -> None:
    assert [one.value for one in kind] == WORDS[kind].split(), "a new word goes to the end"
