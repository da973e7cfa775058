"""The judge: what must hold of every answer that reaches a client, and of everything that was promised."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from quietus.core.exchange import Reply, Request, header
from tests.simulation.calls import Call, Finding, Released
from tests.simulation.network import Witness
from tests.simulation.plan import Step
from tests.simulation.rows import Read, Row, read
from tests.simulation.truth import Erased, Truth, Where

RECALLS = ("recall", "list", "read", "export", "history")


@dataclass
class Judge(Witness):
    """Follows every call and every erasure of one simulation."""

    truth: Truth = field(default_factory=Truth)
    findings: list[Finding] = field(default_factory=list)
    calls: dict[int, Call] = field(default_factory=dict)
    sends: Counter[int] = field(default_factory=Counter)
    """Forgets that left the sidecar, by the step that asked for them."""
    durable: dict[int, Counter[str]] = field(default_factory=dict)
    """Events that the ledger holds, by the step whose erasure they belong to."""
    held: dict[str, Counter[str]] = field(default_factory=dict)
    """The same by erasure."""
    counts: Counter[str] = field(default_factory=Counter)
    before: dict[str, tuple[dict[str, bool], bool]] = field(default_factory=dict)
    there: dict[str, set[str]] = field(default_factory=dict)
    """Tokens that lay in the erased when its snapshot began and when it ended, by erasure."""
    canaries: set[str] = field(default_factory=set)
    writing: set[int] = field(default_factory=set)
    """Writes that have been sent by this process and have not come back."""

    def find(self, property_: str, step: int, says: str, erasure: str = "") -> None:
        if len(self.findings) < 50:
            self.findings.append(Finding(property_, step, erasure, says))

    def begins(self, step: Step) -> Call:
        call = Call(step, Where.of(step) if step["do"] != "history" else Where())
        self.calls[step["n"]] = call
        self.truth.steps[step["n"]] = step
        if step["do"] in ("forget", "delete"):
            self.truth.asks(step["n"], call.where)
        return call

    # --- between the sidecar and the store ---------------------------------------------------------

    def patience(self, step: str) -> float:
        return float(self.calls[int(step)].step.get("answered_after", 0.0)) if step else 0.0

    def sent(self, step: str, request: Request, purpose: str) -> None:
        if not step:
            if purpose == "remedy":
                self._remedy(unquote(request.path.rpartition("/")[2]))
            return
        number = int(step)
        call = self.calls[number]
        if call.sent_at is None:
            call.sent_at = self.truth.next()
        do = call.step["do"]
        if do in ("forget", "delete"):
            self._forget_leaves(number, call)
        elif do == "write":
            self.truth.writing(call.step, call.step.get("quotes") or call.step["token"])
            self.writing.add(number)

    def arrived(self, step: str) -> None:
        self.writing.discard(int(step))

    def _remedy(self, key: str) -> None:
        """What the sidecar deletes by itself must be of the erased, or a record of its own."""
        if key in self.canaries:
            return
        self.counts["remedies"] += 1
        records = [w for ws in self.truth.carried.values() for w in ws if w.key == key]
        erased = self.truth.erased.values()
        if records and not any(w.lies_in(e) or key in self.truth.kin_of(e) for w in records for e in erased):
            self.find("remedy", records[0].step, "a remedy deletes a record of somebody who is not erased")

    def _forget_leaves(self, number: int, call: Call) -> None:
        self.sends[number] += 1
        held = self.durable.get(number)
        if held is None or not held["requested"]:
            self.find("intent", number, "a forget was sent before its intent was durable")
            return
        if held["forwarded"] < self.sends[number]:
            self.find("forwarded", number, "a forget was sent that the ledger does not say was forwarded")
        if not held["snapshotted"]:
            self.find("snapshot", number, "a forget was sent before its snapshot was durable")
        if held["readmitted"]:
            return  # they write again already: no barrier can tell what is old
        if held["accepted"] or held["refused"]:
            self.find("once", number, "a forget was sent again although its answer is known")
        for other in self.writing:
            if call.where.has(*_place(self.calls[other].step)):
                self.find("barrier", number, f"sent while the write of step {other} was under way")

    def handled(self, step: str, request: Request, reply: Reply) -> None:
        if not step:
            if request.method == "POST" and request.path == "/v1/memories":
                self.canaries |= set(read(reply.headers, reply.body).keyed)
            return
        if self.calls[int(step)].step["do"] != "write" or reply.status >= 300:
            return
        keys = {w.key for ws in self.truth.carried.values() for w in ws}
        call = self.calls[int(step)]
        names = read(reply.headers, reply.body)
        # A key that it did not ask for: who sees only the answer cannot tell a merge from one that was
        # free again.
        call.merged |= frozenset((*names.merged, *names.keyed))
        for row in names.keyed:
            for records in self.truth.carried.values():
                for written in [w for w in records if w.step == int(step)]:
                    if written.key is None:
                        written.key, written.reused = row, row in keys
                    elif row not in {w.key for w in records if w.step == int(step)}:
                        records.append(replace(written, key=row, reused=row in keys))  # it went in there

    def answered(self, step: str, request: Request, reply: Reply) -> None:
        if step:
            call = self.calls[int(step)]
            if call.step["do"] in RECALLS:
                call.upstream = read(reply.headers, reply.body)
                subjects = {row.subject for row in call.upstream.rows}
                if call.step["do"] == "read" and len(subjects) == 1:
                    call.where = replace(call.where, subject=subjects.pop())  # a record is its owner's
        elif request.method == "GET":
            held = self.held
            new = [e for n, e in self.truth.erased.items() if n not in held or not held[n]["snapshotted"]]
            if new:
                self._probed(read(reply.headers, reply.body), new)

    def _probed(self, found: Read, new: list[Erased]) -> None:
        for erased in new:
            for row in found.rows:
                if erased.owns(row):
                    erased.seen |= row.tokens
                if any(self.truth.tells_of(token, erased) for token in row.tokens):
                    erased.bearers.add(row.key)

    # --- what leaves for clients -------------------------------------------------------------------

    def released(self, call: Call, out: Released, *, whole: bool) -> None:
        """Judges an answer, or the part of one that leaves now."""
        number, now = call.step["n"], self.truth.next()
        since = call.sent_at if call.sent_at is not None else now
        marked = header(out.headers, "quietus-candidate-set") is not None
        asked = call.step["do"] in RECALLS
        call.handed = now if call.handed is None else call.handed
        met = [e for e in self.truth.erased.values() if e.open(since, now)]
        for row in out.content.rows:
            for token in row.tokens & out.tokens:
                for erased in met:
                    self._token(call, token, row, erased, marked, now)
        for token in out.content.loose & out.tokens:
            for erased in met:
                self._token(call, token, None, erased, marked, now)
        if asked and whole and out.status < 300:
            for erased in met:
                self._mark(call, erased, marked)
            self._bystanders(call, out.content, marked)
        if asked and whole and out.status >= 400:
            self._refused(call, out, met)
        self.counts["tokens"] += len(out.tokens)
        if whole and asked:
            self.counts["passed" if out.status < 300 else "refused" if out.status < 500 else "failed"] += 1
            self.counts["marked"] += marked
            self.counts["met"] += bool(met)
        if whole and call.step["do"] == "write":
            self._write(number, call, out)
        if whole and call.step["do"] in ("forget", "delete"):
            self._promise(number, out)

    def _token(self, call: Call, token: str, row: Row | None, erased: Erased, marked: bool, now: int) -> None:
        told = self.truth.tells_of(token, erased)
        owned = row is not None and erased.owns(row) and not erased.readmitted
        owned = owned and (told or erased.where.subject is not None)
        elsewhere = row is not None and erased.where.tenant not in (None, row.tenant)
        if elsewhere or not (owned or told):
            return
        nobody = row is not None and row.subject is None and not (erased.readmitted or erased.where.keys)
        seen = erased.seen | (self.there.get(erased.id, set()) if erased.whole else set())
        # What was handed over before the snapshot was looked at without it; the rest of a stream is not.
        handed = now if call.step.get("sse") or call.handed is None else call.handed
        known = erased.snapshotted is not None and erased.snapshotted <= handed and token in seen
        near = erased.where.touches(call.where)
        text = call.step["do"] in ("export", "history") and marked  # without rows only marks can tell
        if not (known or ((owned or (nobody and near)) and not text)):
            self.counts["unknowable"] += 1
            return
        kind = "a row of the erased" if owned else "a row of nobody" if nobody else "another's copy"
        says = f"{token} in {kind}, " + ("marked" if marked else "unmarked")
        inside = erased.where.contains(call.where)
        name = "inside" if inside else "held_back" if marked else "leak"
        self.find(name, call.step["n"], says, erased.id)

    def _mark(self, call: Call, erased: Erased, marked: bool) -> None:
        if erased.where.contains(call.where) and not erased.readmitted:
            self.find("shut", call.step["n"], "a recall inside an unsettled erasure was answered", erased.id)
        elif not marked and erased.where.touches(call.where):
            self.find("mark", call.step["n"], "an answer begun while it was unsettled has no mark", erased.id)

    def _bystanders(self, call: Call, out: Read, marked: bool) -> None:
        if marked or call.upstream is None or not call.upstream.readable:
            return
        left = Counter(row.identity for row in out.rows)
        left.subtract(Counter(row.identity for row in call.upstream.rows))
        for row in call.upstream.rows:
            if left[row.identity] < 0 and not self.truth.droppable(row, call.sent_at or 0):
                self.find("bystander", call.step["n"], f"a row of {row.subject} is missing, and no mark")

    def _refused(self, call: Call, out: Released, met: list[Erased]) -> None:
        if call.upstream is None or out.problem not in ("record-quarantined", "erasure-not-settled"):
            return
        if call.upstream.columns:
            return  # its profile reads rows: it has to shut
        since = call.sent_at or 0
        near = [*(e.where for e in met), *self.truth.asked(since)]
        if any(where.touches(call.where) for where in near) or call.upstream.loose or not call.upstream.rows:
            return
        if not any(self.truth.droppable(row, since) for row in call.upstream.rows):
            self.find("bystander", call.step["n"], "an answer was refused that tells of nobody erased")

    def _write(self, number: int, call: Call, out: Released) -> None:
        if out.status < 300:
            self._let_in(number, call)
        name = out.problem
        if name not in ("erased-subject", "scope-laundering"):
            return
        step, where = call.step, Where.of(_written(call.step))
        text = step.get("quotes") or step["token"]
        since = call.sent_at or self.truth.tick  # what shut the gate meanwhile counts, whatever came of it
        if any(pending.touches(where) for pending in self.truth.asked(since)):
            return
        for erased in self.truth.erased.values():
            near = erased.where.tenant in (None, where.tenant)
            if erased.where.touches(where) or self.truth.tells_of(text, erased) or text in erased.seen:
                return
            if self.truth.worded(step, erased):
                return
            kin = self.truth.kin_of(erased)
            if near and kin & {step.get("derived_from"), step.get("key"), *call.merged}:
                return  # derived from the erased, or the store made it one record with them
        self.find("bystander", number, f"a write of {step['subject']} was refused: {name}")

    def _let_in(self, number: int, call: Call) -> None:
        """A write was accepted: not into what was being erased when it was sent, nor by who was erased."""
        sent, where = call.sent_at or self.truth.tick, Where.of(_written(call.step))
        for erased in self.truth.erased.values():
            if erased.readmitted or erased.over or not erased.where.contains(where):
                continue
            begun = erased.spans[0][0] or 0
            if erased.open(sent, sent) or (erased.where.subject is not None and begun < sent):
                self.find("quarantine", number, "a write into what was erased was accepted", erased.id)

    def _promise(self, number: int, out: Released) -> None:
        """What a client was told of its forget must be in the ledger already."""
        self.truth.asked_no_more(number)
        told = header(out.headers, "quietus-erasure")
        if told is None:
            return
        name = told.split('"')[1]
        held = self.held.get(name, Counter())
        if not held["requested"] or (out.status < 300 and not held["accepted"]):
            self.find("lost", number, f"a client was told {out.status} and the ledger does not say why", name)

    def dies(self) -> None:
        """The process is dead: what it was sending has no sender any more."""
        for records in self.truth.carried.values():
            for written in records:
                written.orphan = written.orphan or written.step in self.writing
        for number in list(self.truth.pending):
            self.truth.asked_no_more(number)
        self.writing.clear()
        for erased in self.truth.erased.values():
            if erased.snapshotted is None:
                erased.seen.clear()


def _written(step: Step) -> Step:
    return {name: step[name] for name in ("tenant", "subject", "path", "key") if name in step}


def _place(step: Step) -> tuple[str | None, str | None, str | None, tuple[str, ...] | None]:
    where = Where.of(_written(step))
    return where.tenant, where.subject, step.get("key"), where.path
