"""No request is decided about in one meaning and read by the store in another."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from quietus.adapters import http_client
from quietus.core.exchange import Request
from tests.adapters.wires import PassThrough, Told, wiring
from tests.harness import framing


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_generated_vectors_have_one_meaning_or_are_refused() -> None:
    vectors = list(framing.generate())
    assert len(vectors) >= 1500
    counts = await framing.run(vectors)
    assert not counts.faults
    assert counts.total() == len(vectors)
    # Neither of the two ways out may be the only one.
    assert counts.of("forwarded") > 20 and counts.of("refused") > 1000


async def test_a_folder_of_cases_is_judged_by_its_verdicts(tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(
        textwrap.dedent("""
            - name: two lengths
              uri: /a
              method: POST
              version: HTTP/1.1
              headers: [{name: Content-Length, value: 10}, {name: Content-Length, value: 100}]
              expected: {tier: Severe}
            - name: in order
              uri: /a
              method: POST
              version: HTTP/1.1
              headers: [{name: Content-Length, value: " 60"}]
              expected: {tier: Compliant}
            - name: said to be severe, and taken
              uri: /a
              method: POST
              version: HTTP/1.1
              headers: []
              expected: {tier: Severe}
        """)
    )
    counts = await framing.run(framing.load(tmp_path))
    assert (
        counts.total() == 3
        and counts.of("forwarded", "Compliant") == 1
        and counts.of("refused", "Severe") == 1
    )
    assert len(counts.faults) == 1 and "said to be severe" in counts.faults[0]


def test_a_folder_without_cases_is_not_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        assert framing.main([str(folder)]) == 2 and str(folder) in capsys.readouterr().err


async def test_the_harness_sees_a_smuggled_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with a client that forwards what stands behind a body, there are faults."""
    encode = http_client._Outgoing.encode
    monkeypatch.setattr(
        http_client._Outgoing, "encode", lambda self, *told: encode(self, *told) + framing.SMUGGLED
    )
    sent = b"POST /v1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
    counts = await framing.run([framing.Vector("smuggles", sent)])
    assert len(counts.faults) == 1 and "two meanings" in counts.faults[0]


async def test_the_handler_is_shown_what_the_store_reads() -> None:
    async with wiring() as wire:

        async def altered(request: Request) -> Told:
            return await PassThrough._forward(wire.handler, Request(request.method, "/other"))

        wire.handler.answer = altered
        outcome = await framing.attack(wire, framing.Vector("x", b"GET /v1 HTTP/1.0\r\n\r\n"))
        assert outcome.startswith("two meanings")
