"""Failures that users of real stores and proxies have reported, played against the real process.

Transcripts that start their sidecar alike share one process and are played beside each other, each in a
tenant and against a store of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

import pytest

from tests.e2e.process import Quietus, shipped
from tests.transcripts.player import Played, Transcript, load
from tests.transcripts.town import Town

AT_ONCE = 6
STORE = {"settling_interval": "1s", "effectuation_bound": "120s"}
LIMITS = {"probe_rate_per_second": 500}
TRANSCRIPTS = sorted(load(), key=lambda transcript: (transcript.group, transcript.name))


def _rows(transcript: Transcript) -> list[pytest.MarkDecorator]:
    return [pytest.mark.requirement(*transcript.rows)] if transcript.rows else []


def _start(folder: Path, town: Town, sidecar: dict) -> Quietus:  # type: ignore[type-arg]
    folder.mkdir()
    profile = shipped("memory-tool", folder, **{**STORE, **sidecar.get("store", {})})
    settings = {"limits": {**LIMITS, **sidecar.get("limits", {})}}
    return Quietus(folder, town.url, str(profile), settings, policy=sidecar.get("policy", "default")).start()


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[None]]]:
    """The transcripts that were asked for, by name, being played."""
    asked = {
        item.callspec.params["transcript"].name
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_transcript
    }
    town = Town()
    root = tmp_path_factory.mktemp("transcripts")
    sidecars, plays = [], {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        chosen = [transcript for transcript in TRANSCRIPTS if transcript.name in asked]
        for number, (_, group) in enumerate(groupby(chosen, key=lambda transcript: transcript.group)):
            transcripts = list(group)
            sidecar = _start(root / f"sidecar-{number}", town, transcripts[0].sidecar)
            sidecars.append(sidecar)
            for transcript in transcripts:
                plays[transcript.name] = pool.submit(Played(transcript, sidecar, town).play)
        yield plays
    codes = [sidecar.stop() for sidecar in sidecars]
    town.close()
    assert codes == [0] * len(codes)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "transcript",
    [pytest.param(t, id=t.name, marks=[pytest.mark.case(*t.cases), *_rows(t)]) for t in TRANSCRIPTS],
)
def test_transcript(transcript: Transcript, played: dict[str, Future[None]]) -> None:
    played[transcript.name].result(170)


def test_every_transcript_says_what_it_is() -> None:
    assert len({t.name for t in TRANSCRIPTS}) == len(TRANSCRIPTS)
    for transcript in TRANSCRIPTS:
        assert transcript.title and transcript.cases and set(transcript.kinds) <= set("ABCDEFGHIJK")


def test_the_store_alone_tells_what_the_transcripts_must_lack() -> None:
    """The control: where a transcript says `lacks`, the same words come without a sidecar."""
    secretive = [t for t in TRANSCRIPTS if any("lacks" in step for step in t.play if "call" in step)]
    town = Town()
    try:
        silent = [t.name for t in secretive if not Played(t, None, town).leaks()]
    finally:
        town.close()
    assert len(secretive) > 15
    assert silent == []
