"""Failures that users of real stores and proxies have reported, played against the process, on both wires.

Transcripts that start their sidecar alike share one process and are played beside each other, each in a
tenant and against a store of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transcripts.__main__ import line
from tests.transcripts.evening import Evening, Show
from tests.transcripts.over_grpc import PlayedOverGrpc
from tests.transcripts.player import Played, Transcript, load
from tests.transcripts.town import Town

TRANSCRIPTS = sorted(load(), key=lambda transcript: (transcript.group, transcript.name))
WIRES = (Path(__file__).resolve().parents[2] / "docs" / "wires.md").read_text().splitlines()
"""The page that shows both wires side by side."""
ON_BOTH = [transcript for transcript in TRANSCRIPTS if not transcript.only_http]


def _rows(transcript: Transcript, *more: str) -> list[pytest.MarkDecorator]:
    rows = (*transcript.rows, *more)
    return [pytest.mark.requirement(*rows)] if rows else []


def _evening(
    request: pytest.FixtureRequest, folder: Path, kind: type[Played], *tests: object
) -> Iterator[dict[str, Show]]:
    """The transcripts that were asked for, by name, being played."""
    asked = {
        item.callspec.params["transcript"].name
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function in tests
    }
    with Evening(folder, kind) as evening:
        yield evening.play([transcript for transcript in TRANSCRIPTS if transcript.name in asked])


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Show]]:
    folder = tmp_path_factory.mktemp("over-http")
    yield from _evening(request, folder, Played, test_transcript, test_both_wires_decide_alike)


@pytest.fixture(scope="module")
def played_over_grpc(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Show]]:
    folder = tmp_path_factory.mktemp("over-grpc")
    yield from _evening(
        request, folder, PlayedOverGrpc, test_transcript_over_grpc, test_both_wires_decide_alike
    )


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "transcript",
    [pytest.param(t, id=t.name, marks=[pytest.mark.case(*t.cases), *_rows(t)]) for t in TRANSCRIPTS],
)
def test_transcript(transcript: Transcript, played: dict[str, Show]) -> None:
    played[transcript.name].over()


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "transcript",
    [pytest.param(t, id=t.name, marks=[pytest.mark.case(*t.cases), *_rows(t, "R192")]) for t in ON_BOTH],
)
def test_transcript_over_grpc(transcript: Transcript, played_over_grpc: dict[str, Show]) -> None:
    played_over_grpc[transcript.name].over()


@pytest.mark.timeout(180)
@pytest.mark.requirement("R192")
@pytest.mark.parametrize("transcript", [pytest.param(t, id=t.name) for t in ON_BOTH])
def test_both_wires_decide_alike(
    transcript: Transcript, played: dict[str, Show], played_over_grpc: dict[str, Show]
) -> None:
    """The same decisions, reasons and marks of each call, and the same course of each erasure."""
    one, other = played[transcript.name], played_over_grpc[transcript.name]
    assert one.over() == other.over()
    assert one.course() == other.course()
    assert line(transcript.name, one, other) in WIRES, "docs/wires.md: python -m tests.transcripts"


def test_only_what_is_about_the_wire_is_left_out() -> None:
    listed = {row.split(" | ")[0].removeprefix("| ") for row in WIRES if row.endswith("| yes |")}
    assert listed == {t.name for t in ON_BOTH} and not any("| NO |" in row for row in WIRES)
    assert all(f"- {t.name}: {t.only_http}" in WIRES for t in TRANSCRIPTS if t.only_http)
    assert len(TRANSCRIPTS) - len(ON_BOTH) < 12, [t.name for t in TRANSCRIPTS if t.only_http]


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
