"""Whether a text bears what a witness left: through the gate and the screener, as the product looks."""

from __future__ import annotations

from quietus.core.fingerprint import alias_mark, beside_marks, marks_of
from quietus.core.screener import Screener
from tests.core.making import World, digest, pseudonym, scope


def found(witness: str, text: str, *, alias: str = "", beside: bool = False) -> set[str]:
    """The causes for which `text` belongs to the one whose memory `witness` was; empty: for none."""
    world = World()
    erasure = world.erase(scope(subject="alice"))
    world.mark(erasure, *marks_of(witness, digest))
    named = alias_mark(alias, digest) if alias else None
    if named is not None:
        world.mark(erasure, named)
    if beside:
        world.mark(erasure, *beside_marks([witness], alias, digest))
    causes = {hit.cause for hit in Screener(world.gate, pseudonym, digest).look(text)}
    return causes - {"alias"} if witness else causes
