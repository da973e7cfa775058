"""Many transcripts at a time: those that start their sidecar alike share one, each in a tenant of its own."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from tests.e2e.process import Quietus, shipped
from tests.transcripts.over_grpc import PlayedOverGrpc, RpcTown
from tests.transcripts.player import Played, Transcript
from tests.transcripts.town import Town

AT_ONCE = 6
STORE = {"settling_interval": "1s", "effectuation_bound": "120s"}
LIMITS = {"probe_rate_per_second": 500}
COURSE = ("requested", "snapshotted", "forwarded", "accepted", "refused", "unclear", "readmitted", "released")
"""Events that the calls of a transcript cause; how many rounds of probes there are depends on the machine."""


@dataclass
class Show:
    """One transcript, being played."""

    played: Played
    future: Future[None]

    def over(self) -> list[tuple[str, str]]:
        """What was decided of each call, once it is over. Raises what went wrong."""
        self.future.result(170)
        return self.played.told

    def course(self) -> list[str]:
        """What the ledger says of the newest erasure."""
        if not self.played.erasure_id:
            return []
        events = self.played.sidecar.office(f"/v1/erasures/{self.played.erasure_id}/events")["events"]
        return [event["type"] for event in events if event["type"] in COURSE]


class Evening:
    """A town, its sidecars, and what is played in them."""

    def __init__(self, folder: Path, kind: type[Played]) -> None:
        self._folder = folder
        self._kind = kind
        self._town = Town()
        self._rpc = RpcTown(self._town)
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._sidecars: list[Quietus] = []
        self._shows: dict[str, Show] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
        for show in self._shows.values():
            show.played.close()
        codes = [sidecar.stop() for sidecar in self._sidecars]
        self._rpc.close()
        self._town.close()
        assert codes == [0] * len(codes)

    def play(self, transcripts: list[Transcript]) -> dict[str, Show]:
        """Begins to play them; they are ordered by their group."""
        over_grpc = issubclass(self._kind, PlayedOverGrpc)
        chosen = [each for each in transcripts if not (over_grpc and each.only_http)]
        for number, (_, group) in enumerate(groupby(chosen, key=lambda transcript: transcript.group)):
            alike = list(group)
            sidecar = self._start(self._folder / f"sidecar-{number}", alike[0].sidecar, over_grpc)
            self._sidecars.append(sidecar)
            for transcript in alike:
                played = self._kind(transcript, sidecar, self._town, self._rpc)
                self._shows[transcript.name] = Show(played, self._pool.submit(played.play))
        return self._shows

    def _start(self, folder: Path, sidecar: dict[str, Any], over_grpc: bool) -> Quietus:
        folder.mkdir()
        profile = str(shipped("memory-tool", folder, **{**STORE, **sidecar.get("store", {})}))
        settings: dict[str, Any] = {"limits": {**LIMITS, **sidecar.get("limits", {})}}
        if over_grpc:
            reached = {"listen": "127.0.0.1:0", "upstream": self._rpc.address}
            settings["store"] = {"profile": profile, "grpc": reached}
        policy = sidecar.get("policy", "default")
        return Quietus(folder, self._town.url, profile, settings, policy=policy).start()
