"""Plays every transcript on both wires and prints, as Markdown, what was decided on each.

    python -m tests.transcripts > docs/wires.md
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from quietus.core.problems import PROBLEMS
from tests.transcripts.evening import Evening, Show
from tests.transcripts.over_grpc import PlayedOverGrpc
from tests.transcripts.player import Played, load

HEAD = """# The same decisions on both wires

Every transcript of `tests/transcripts/*.yaml` is played against the real process over HTTP and over gRPC
(`tests/transcripts/test_transcripts.py`). For each call through the sidecar the problem, its reason, the rule
and the marks must be the same, and so must the course of its erasure in the ledger. This page is
written by `python -m tests.transcripts > docs/wires.md`; that test holds each line of it to what was played.

| transcript | calls | refused on HTTP | refused on gRPC | marked on HTTP | marked on gRPC | ledger | same |
|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Plays and prints."""
    transcripts = sorted(load(), key=lambda transcript: (transcript.group, transcript.name))
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "http").mkdir()
        (root / "grpc").mkdir()
        with Evening(root / "http", Played) as one, Evening(root / "grpc", PlayedOverGrpc) as other:
            over_http, over_grpc = one.play(transcripts), other.play(transcripts)
            for transcript in sorted(transcripts, key=lambda each: each.name):
                if not transcript.only_http:
                    print(line(transcript.name, over_http[transcript.name], over_grpc[transcript.name]))
    print("\nPlayed over HTTP alone:\n")
    for transcript in sorted(transcripts, key=lambda each: each.name):
        if transcript.only_http:
            print(f"- {transcript.name}: {transcript.only_http}")


def line(name: str, http: Show, grpc: Show) -> str:
    """What the page says of one transcript."""
    told, told_too = http.over(), grpc.over()
    course, course_too = http.course(), grpc.course()
    cells = [name, str(len(told))]
    for counted in (_refused, _marked):
        cells += [str(counted(told)), str(counted(told_too))]
    cells += [", ".join(course) or "none", "yes" if (told, course) == (told_too, course_too) else "NO"]
    return f"| {' | '.join(cells)} |"


def _refused(told: list[tuple[str, str]]) -> int:
    return sum(1 for _, decided in told if decided.partition(";")[0].partition(" ")[0] in PROBLEMS)


def _marked(told: list[tuple[str, str]]) -> int:
    return sum(1 for _, decided in told if "contaminated" in decided or "erasure " in decided)


if __name__ == "__main__":
    main()
