"""What every profile that ships declares about the ways in which memories come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from quietus.profiles.loader import load_profile, shipped_names

VALUES: dict[str, Any] = {
    "key": "k", "subject": "s", "tenant": "t", "purpose": "p", "path": "a/b", "text": "words", "epoch": 1,
    "vector": [0.0, 1.0], "database": "d", "collection_id": "c", "collection": "c",
}  # fmt: skip


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """Every whole number in a document, with its name."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(each, key)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield name, value


@pytest.mark.requirement("R47", "R50", "R58")
@pytest.mark.parametrize("name", shipped_names())
def test_each_has_the_record_itself_and_names_what_nobody_can_probe(name: str) -> None:
    surfaces = load_profile(name).surfaces
    assert "primary" in {surface.kind for surface in surfaces}
    outside = [surface for surface in surfaces if not surface.probeable]
    assert outside and all(surface.note for surface in outside), "each says why"
    assert len({surface.name for surface in surfaces}) == len(surfaces)


@pytest.mark.requirement("R115")
@pytest.mark.parametrize("name", [name for name in shipped_names() if name not in ("etcd", "milvus")])
def test_a_search_asks_for_ten_or_more(name: str) -> None:
    searches = [s for s in load_profile(name).surfaces if s.probeable and s.each in ("text", "vector")]
    assert searches
    for surface in searches:
        body = json.loads(surface.request(VALUES).body)
        asked = [n for key, n in numbers(body) if key in ("top_k", "n_results", "limit")]
        assert asked and min(asked) >= 10, surface.name
