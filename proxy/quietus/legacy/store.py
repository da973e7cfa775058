"""`LegacyStore`: the canonical memory tool as one object that answers requests.

It is synchronous and does no I/O, so that a simulator can hold thousands of them; `server` puts it
on a socket. Background work that has fallen due runs whenever a request arrives, and on `tick()`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from quietus.core.exchange import Reply, Request, header
from quietus.legacy import wire
from quietus.legacy.faults import Faults
from quietus.legacy.forgetting import Answer, delete, forget, reset
from quietus.legacy.recalling import Ask, Reader, exported, get, listing, reader, recall, shown
from quietus.legacy.records import Predicate
from quietus.legacy.world import World
from quietus.legacy.writing import Draft, write
from quietus.ports import Clock

HONEST: Final = Faults()


class LegacyStore:
    """A memory service with the faults that it is given; without any, an honest one.

    `clock` is the only time it knows, `seed` the only chance. With a `credential`, requests must
    carry it as a bearer token. `calls` counts the requests of each route, refused ones included.
    """

    def __init__(
        self, clock: Clock, seed: int = 0, faults: Faults = HONEST, *, credential: str | None = None
    ) -> None:
        self.clock = clock
        self.seed = seed
        self.faults = faults
        self.calls: Counter[str] = Counter()
        self._credential = credential
        self._world = World(clock, faults, seed)

    # --- for clients -----------------------------------------------------------------------------

    def handle(self, request: Request) -> Reply:
        """Answers one request. Raises `forgetting.NoAnswer` where the store never does."""
        self.tick()
        method = "GET" if request.method == "HEAD" else request.method
        try:
            answer = self._route(method, request)
        except wire.BadRequest as fault:
            answer = wire.reply(fault.status, {"error": "bad_request", "message": fault.message}, self.faults)
        except MemoryError:
            answer = wire.reply(507, {"error": "full", "message": "the store is full"}, self.faults)
        return answer if request.method != "HEAD" else Reply(answer.status, answer.headers)

    def _route(self, method: str, request: Request) -> Reply:
        segments = wire.segments_of(request)
        if segments != ("healthz",) and not self._known(request):
            self.calls["unauthorized"] += 1
            return self._say(401, {"error": "unauthorized", "message": "a bearer token is required"})
        match method, segments:
            case "POST", ("v1", "memories"):
                return self._write(request)
            case "GET", ("v1", "memories"):
                return self._list(request)
            case "GET", ("v1", "memories", key):
                return self._read(request, key)
            case "DELETE", ("v1", "memories", key):
                return self._delete(request, key)
            case "GET", ("v1", "memories", key, "history"):
                return self._history(request, key)
            case "POST", ("v1", "recall"):
                return self._recall(request)
            case "POST", ("v1", "forget"):
                return self._forget(request)
            case "POST", ("v1", "reset"):
                return self._reset(request)
            case "GET", ("v1", "epoch"):
                return self._epoch()
            case "GET", ("v1", "export"):
                return self._export(request)
            case "GET", ("healthz",):
                self.calls["health"] += 1
                return self._say(200, {"status": "ok"})
        self.calls["unknown"] += 1
        known = segments in _PATHS or segments[:2] == ("v1", "memories")
        status, error = (405, "method_not_allowed") if known else (404, "no_such_route")
        return self._say(status, {"error": error, "message": "see docs/memory-tool.openapi.yaml"})

    def _write(self, request: Request) -> Reply:
        self.calls["write"] += 1
        fields = wire.fields_of(request)
        batch = fields.member("memories")
        if batch is None:
            result = write(self._world, wire.draft_of(fields))
            return self._say(202 if result["status"] == "queued" else 201, result)
        fields.done()
        if (
            not isinstance(batch, list)
            or not 0 < len(batch) <= wire.BATCH_MAX
            or not all(isinstance(item, dict) for item in batch)
        ):
            raise wire.BadRequest(f"memories: must be an array of 1 to {wire.BATCH_MAX} objects")
        drafts = [wire.draft_of(wire.Fields(item, f"memories[{at}].")) for at, item in enumerate(batch)]
        results = [write(self._world, draft) for draft in drafts]
        queued = any(result["status"] == "queued" for result in results)
        return self._say(202 if queued else 201, {"results": results})

    def _read(self, request: Request, key: str) -> Reply:
        self.calls["read"] += 1
        query = wire.query_of(request)
        tenant = query.text("tenant")
        query.done()
        found = get(self._world, self._reader(request), tenant, key)
        if found is None:
            return self._say(404, {"error": "not_found", "message": "there is no memory with this key"})
        return self._say(200, shown(self._world, found))

    def _list(self, request: Request) -> Reply:
        self.calls["list"] += 1
        query = wire.query_of(request)
        within = wire.predicate_of(query)
        limit = int(query.number("limit", 1, wire.LIMIT_MAX) or 100)
        after = int(query.number("cursor", 0, 1e9) or 0)
        query.done()
        found = [
            record for record in listing(self._world, self._reader(request), within) if record.uid > after
        ]
        page = found[:limit]
        following = str(page[-1].uid) if len(found) > limit else None
        rows = [shown(self._world, record) for record in page]
        return wire.rows_reply(rows, {"next": following}, self.faults)

    def _recall(self, request: Request) -> Reply:
        self.calls["recall"] += 1
        fields = wire.fields_of(request)
        query = fields.text("query")
        vector = wire.vector_of(fields)
        if query is None and vector is None:
            raise wire.BadRequest("query: is required where no vector is given")
        include = fields.texts("include") or ()
        ask = Ask(
            query or "",
            wire.predicate_of(fields),
            int(fields.number("top_k", 1, wire.LIMIT_MAX) or 10),
            vector,
            "vector" in include,
        )
        fields.done()
        rows = recall(self._world, self._reader(request), ask)
        accept = header(request.headers, "accept") or ""
        if self.faults.sse or "text/event-stream" in accept.lower():
            return wire.events_reply(rows, self.faults)
        extra: dict[str, Any] = {"read_epoch": self._world.read_epoch} if self._epochs else {}
        return wire.rows_reply(rows, extra, self.faults)

    def _forget(self, request: Request) -> Reply:
        self.calls["forget"] += 1
        fields = wire.fields_of(request)
        keys, purposes = fields.texts("keys"), fields.texts("purposes")
        fields.text("basis")
        predicate = Predicate(
            tenant=fields.text("tenant"),
            subject=fields.text("subject"),
            keys=None if keys is None else frozenset(keys),
            scope=fields.text("scope"),
            purposes=None if purposes is None else frozenset(purposes),
        )
        fields.done()
        if predicate.open or keys == () or purposes == () or "" in (predicate.subject, predicate.scope):
            raise wire.BadRequest("a forget needs a subject, keys or a scope, none of them empty", 422)
        return self._answer(forget(self._world, predicate))

    def _delete(self, request: Request, key: str) -> Reply:
        self.calls["delete"] += 1
        query = wire.query_of(request)
        tenant = query.text("tenant")
        query.done()
        return self._answer(delete(self._world, tenant, key))

    def _reset(self, request: Request) -> Reply:
        self.calls["reset"] += 1
        fields = wire.fields_of(request)
        predicate = wire.predicate_of(fields)
        fields.done()
        if predicate.tenant is None and predicate.subject is None:
            raise wire.BadRequest("a reset needs a tenant or a subject", 422)
        return self._answer(reset(self._world, predicate))

    def _history(self, request: Request, key: str) -> Reply:
        self.calls["history"] += 1
        query = wire.query_of(request)
        tenant = query.text("tenant")
        query.done()
        for place, log in self._world.histories.items():
            if place[1] == key and tenant in (None, place[0]):
                return self._say(200, {"results": list(log)})
        return self._say(404, {"error": "not_found", "message": "there is no history of this key"})

    def _export(self, request: Request) -> Reply:
        self.calls["export"] += 1
        query = wire.query_of(request)
        within = wire.predicate_of(query)
        query.done()
        return wire.lines_reply(
            [shown(self._world, record) for record in exported(self._world, within)], self.faults
        )

    def _epoch(self) -> Reply:
        self.calls["epoch"] += 1
        return self._say(200, {"read_epoch": self._world.read_epoch})

    # --- for whoever holds the store -------------------------------------------------------------

    def tick(self) -> int:
        """Runs the background work that has fallen due; says how many jobs ran."""
        ran = self._world.schedule.run(self.clock.monotonic())
        self._world.forget_the_past()
        return ran

    def next_due(self) -> float | None:
        """When background work falls due next, on the monotonic clock; None: there is none."""
        return self._world.schedule.next_due()

    def restart(self) -> None:
        """A restart: caches and pending work are gone; with `restart_resurrection` the erased are back."""
        self.tick()
        world = self._world
        world.schedule.clear()
        world.answers.clear()
        world.chunks.clear()
        world.traces.clear()
        world.compact()
        if self.faults.restart_resurrection:
            for place, record in world.disk.items():
                if place not in world.rows:
                    world.revive(record)

    def put(self, value: str, **more: Any) -> str:
        """Writes a memory without a request; the arguments of `Draft`. Returns its key."""
        self.tick()
        return str(write(self._world, Draft(value, **more))["key"])

    def holds(self, text: str) -> frozenset[str]:
        """The surfaces that hold `text` now: the truth that no client sees. For judges of a run."""
        self.tick()
        world = self._world
        wanted = text.casefold()

        def has(records: Any) -> bool:
            return any(wanted in record.value.casefold() for record in records)

        surfaces: dict[str, Any] = {
            "rows": world.rows.values(),
            "index": world.index.values(),
            "chunks": world.chunks.values(),
            "ghosts": [ghost.record for ghost in world.ghosts],
        }
        found = {name for name, records in surfaces.items() if has(records)}
        if any(wanted in str(rows).casefold() for until, rows in world.answers.values() if until > world.now):
            found.add("answers")
        if any(wanted in str(entry["value"]).casefold() for log in world.histories.values() for entry in log):
            found.add("history")
        return frozenset(found)

    # --- small things ----------------------------------------------------------------------------

    @property
    def _epochs(self) -> bool:
        return self.faults.epochs or self.faults.epoch_regresses

    def _known(self, request: Request) -> bool:
        if self._credential is None:
            return True
        return header(request.headers, "authorization") == f"Bearer {self._credential}"

    def _reader(self, request: Request) -> Reader:
        return reader(self._world, client=header(request.headers, "user-agent") is not None)

    def _answer(self, answer: Answer) -> Reply:
        return self._say(answer.status, answer.document)

    def _say(self, status: int, document: Any) -> Reply:
        return wire.reply(status, document, self.faults)


_PATHS: Final = frozenset(
    {("v1", name) for name in ("recall", "forget", "reset", "epoch", "export")} | {("healthz",)}
)
