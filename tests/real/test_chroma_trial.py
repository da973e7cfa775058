"""A canary trial against Chroma, unmodified, through its shipped profile."""

from __future__ import annotations

import pytest

from quietus.app import SystemClock, store_client
from quietus.cli.trying import tried
from quietus.config import load
from quietus.profiles.loader import load_profile
from quietus.trial.run import Plan, Refused
from quietus.trial.watching import Patience
from tests.real.test_chroma import BOB, _client, _filled
from tests.real.test_chroma import chroma as chroma


@pytest.mark.timeout(300)
@pytest.mark.requirement("R2")
async def test_chroma_is_tried_and_left_as_it_was(chroma: str) -> None:
    collection = _filled(_client(chroma), "tried")
    bare = _client(chroma).create_collection("bare", embedding_function=None)
    settings = load(None, {"store.profile": "chroma", "store.http.upstream": chroma}, {})
    client = store_client(settings.store.http, settings.timeouts)
    where = {"tenant": "default_tenant", "database": "default_database"}
    plan = Plan(
        {**where, "collection_id": str(collection.id)}, trials=10, records=110, rate=1000.0,
        patience=Patience(10.0, 60.0, 1.0),
    )  # fmt: skip
    # The vectors' dimension is read from a record that is there; without one it has to be given.
    seen, found = await tried(load_profile("chroma"), client, SystemClock(), plan, lambda *_: None)
    empty = Plan({**where, "collection_id": str(bare.id)})
    with pytest.raises(Refused, match="--vector-dimension"):
        await tried(load_profile("chroma"), client, SystemClock(), empty, lambda *_: None)
    await client.close()
    assert found.complete and set(found.lags) == {"record", "list", "contains", "near"}
    assert {name for name, one in found.findings.items() if one.found} <= {"leaks", "row_before_index"}
    assert not seen.left and not seen.residue
    left = collection.get()
    assert sorted(left["ids"]) == ["a1", "a2", "b1"] and BOB in left["documents"]
