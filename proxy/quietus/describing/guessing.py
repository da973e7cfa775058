"""What an endpoint probably does, and which of its fields probably says what. Every answer is a guess."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from quietus.describing.nodes import Endpoint, Node, Parameter, Steps, words

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "tenant": ("tenant", "tenantid", "org", "orgid", "organization", "organizationid", "account", "accountid",
               "workspace", "workspaceid"),
    "subject": ("subject", "subjectid", "user", "userid", "person", "personid", "customer", "customerid",
                "patient", "patientid", "member", "memberid", "employee", "employeeid", "contact",
                "contactid", "owner", "ownerid", "author", "authorid", "uid", "who", "about"),
    "purpose": ("purpose", "purposes"),
    "path": ("scope", "namespace", "path", "folder"),
    "key": ("key", "keys", "id", "ids", "memoryid", "memoryids", "recordid", "recordids", "noteid", "noteids",
            "documentid", "docid", "itemid", "entryid", "factid", "uuid"),
    "content": ("content", "text", "value", "memory", "note", "fact", "statement", "document", "message",
                "data"),
    "query": ("query", "q", "question", "search", "searchquery", "querytext", "prompt"),
    "vector": ("vector", "embedding", "queryvector", "queryembedding"),
    "derived_from": ("derivedfrom", "sources", "sourceids", "parents", "parentids"),
    "salience": ("salience", "importance"),
    "ttl": ("ttl", "expiresin"),
    "basis": ("basis", "legalbasis"),
    "score": ("score", "similarity", "distance"),
    "count": ("deleted", "removed", "count", "deletedcount", "removedcount", "recordsremoved"),
    "token": ("token", "receipt", "ticket", "jobid"),
    "next": ("next", "nextcursor", "nextpage", "nextpagetoken"),
    "cursor": ("cursor", "pagetoken", "after"),
    "limit": ("limit", "topk", "k", "nresults", "maxresults", "pagesize", "size", "top"),
}  # fmt: skip
"""How fields are called that say one thing: the likeliest first."""
_WHOSE: Final = ("id", "key", "name")
_FORGETS: Final = frozenset(
    {"delete", "forget", "erase", "remove", "purge", "destroy", "clear", "reset", "wipe"}
)
_RECALLS: Final = frozenset({"search", "recall", "query", "retrieve", "find", "similar", "lookup", "ask",
                             "list", "match", "export", "history"})  # fmt: skip
_WRITES: Final = frozenset({"add", "write", "create", "insert", "put", "store", "save", "upsert", "remember",
                            "ingest", "update", "append", "record"})  # fmt: skip
_READS: Final = frozenset({"get", "read", "fetch", "show", "load"})
_SERVICE: Final = frozenset({"health", "healthz", "ready", "readyz", "live", "livez", "ping", "metrics",
                             "version", "status", "docs", "openapi", "check", "watch", "reflection",
                             "epoch"})  # fmt: skip

_VERBS: Final = (("forget", _FORGETS), ("recall", _RECALLS), ("write", _WRITES), ("read", _READS),
                 ("ignore", _SERVICE))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """A field that probably says something. `where` is path, query or body."""

    where: str
    steps: Steps
    required: bool = False
    many: bool = False
    node: Node = Node()

    @property
    def selector(self) -> str:
        """As a profile selects it."""
        return selector(self.where, self.steps)

    @property
    def why(self) -> str:
        """Where it was seen."""
        return f"{self.where}: {'.'.join(self.steps)}"


@dataclass(frozen=True, slots=True)
class Rows:
    """Where the rows of an answer probably are, and what is in one."""

    items: Steps
    item: Mapping[str, Steps]
    single: bool = False


def selector(where: str, steps: Steps) -> str:
    """A JSONPath from its steps; `where` is empty at the row itself."""
    out = f"$.{where}" if where else "$"
    for step in steps:
        if step == "*":
            out += "[*]"
        else:
            out += f".{step}" if re.fullmatch(r"[A-Za-z_]\w*", step) else f"['{step}']"
    return out


def plain(name: str) -> str:
    """A name in lower case without what separates its words."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _singular(name: str) -> str:
    name = plain(name)
    return {"people": "person", "memories": "memory"}.get(name, name.removesuffix("s"))


def in_node(dimension: str, node: Node | None, entering: bool = False) -> tuple[Steps, Node] | None:
    """The member that probably says it: nearest, then likeliest; in arrays of objects if `entering`."""
    best: tuple[tuple[int, int], Steps, Node] | None = None
    for steps, member in node.walk() if node is not None else ():
        if "*" in steps and not entering:
            continue
        rank = _rank(dimension, steps)
        if rank is None or not _fits(dimension, member):
            continue
        if best is None or (len(steps), rank) < best[0]:
            best = ((len(steps), rank), steps, member)
    if best is None:
        return None
    many = best[2].of is not None and dimension != "vector"
    return ((*best[1], "*") if many else best[1]), best[2]


def _rank(dimension: str, steps: Steps) -> int | None:
    names = NAMES[dimension]
    own = plain(steps[-1])
    above = [step for step in steps[:-1] if step != "*"]
    if above and own in _WHOSE:
        own = _singular(above[-1]) + ("id" if own == "key" else own)
    return names.index(own) if own in names else None


def _fits(dimension: str, node: Node) -> bool:
    if dimension == "vector":
        return node.of is not None and node.of.scalar or "array" in node.kinds and node.of is None
    if node.of is not None:
        return node.of.scalar and dimension not in ("query", "limit", "cursor", "next", "count", "token")
    if dimension in ("limit", "count"):
        return "integer" in node.kinds
    return not node.members and not node.kinds & {"boolean", "object", "bytes"}


def in_parameters(dimension: str, parameters: tuple[Parameter, ...]) -> Found | None:
    """The parameter that probably says it."""
    names = NAMES[dimension]
    best: tuple[int, Found] | None = None
    for each in parameters:
        own = plain(each.name)
        if each.place == "path" and own in _WHOSE:
            whose = _singular(each.before) + "id"
            own = whose if whose in NAMES["subject"] or whose in NAMES["tenant"] else "id"
        if own in names:
            steps = (each.name, "*") if each.many else (each.name,)
            found = Found(each.place, steps, each.required, each.many)
            if best is None or names.index(own) < best[0]:
                best = (names.index(own), found)
    return best[1] if best else None


def field_of(dimension: str, endpoint: Endpoint) -> Found | None:
    """Where a request probably says it: in its path and query, else in its body."""
    named = in_parameters(dimension, endpoint.parameters)
    if named is not None:
        return named
    found = in_node(dimension, endpoint.body, entering=dimension == "content")
    if found is None or endpoint.body is None:
        return None
    steps, node = found
    needed = len(steps) == 1 and steps[0] in endpoint.body.required
    return Found("body", steps, needed, node.of is not None, node)


def rows_of(node: Node | None) -> list[Rows]:
    """Where the rows of an answer probably are: the likeliest list, and itself if it may be one."""
    if node is None:
        return []
    best: tuple[int, Rows] | None = None
    lists: list[tuple[Steps, Node]] = [((), node), *node.walk(2)]
    for steps, each in lists:
        if each.of is None or not each.of.members or "*" in steps:
            continue
        item = _item(each.of)
        score = sum(3 if name in ("key", "content", "subject") else 1 for name in item)
        if {"key", "content"} & item.keys() and (best is None or score > best[0]):
            best = (score, Rows(steps, item))
    own = _item(node) if node.members else {}
    single = "key" in own and len(own["key"]) == 1
    found = [best[1]] if best else []
    return [*found, Rows((), own, single=True)] if single else found


def _item(node: Node) -> dict[str, Steps]:
    found: dict[str, Steps] = {}
    for name in ("key", "tenant", "subject", "purpose", "path", "content", "vector", "derived_from", "score"):
        seen = in_node(name, node, entering=name == "content")
        if seen is not None and seen[0] not in found.values():
            found[name] = seen[0]
    return found


def operation_of(endpoint: Endpoint) -> tuple[str, str] | None:
    """What a call probably does, and why; None where nothing tells."""
    if endpoint.wire == "grpc":
        return _of_method(endpoint)
    last = words(endpoint.literals[-1]) if endpoint.literals else []
    if endpoint.method == "GET" and last and set(last) & _SERVICE:
        return "ignore", f"its path ends with {last[-1]}"
    if endpoint.method == "DELETE":
        return "forget", "DELETE"
    if endpoint.method == "GET":
        return _of_get(endpoint)
    verbs = _verb(
        [*words(endpoint.name), *(word for part in reversed(endpoint.literals) for word in words(part))]
    )
    if verbs is not None and verbs[0] != "read":
        return verbs
    if endpoint.method in ("PUT", "PATCH"):
        return "write", endpoint.method
    for dimension, operation in (("query", "recall"), ("vector", "recall"), ("content", "write")):
        if field_of(dimension, endpoint) is not None:
            return operation, f"it takes a {dimension}"
    return None


def _of_get(endpoint: Endpoint) -> tuple[str, str] | None:
    ends = endpoint.path.endswith("}")
    key = field_of("key", endpoint)
    if ends and key is not None and key.where == "path":
        return "read", "GET of one by its key"
    if rows_of(endpoint.answer):
        return "recall", "GET of a list"
    answer = endpoint.answer
    if answer is not None and answer.members and not any("string" in n.kinds for _, n in answer.walk()):
        return "ignore", "its answer holds no text"
    return "recall", "GET, and its answer may hold texts"


def _of_method(endpoint: Endpoint) -> tuple[str, str] | None:
    if endpoint.path.startswith(("/grpc.health.", "/grpc.reflection.")):
        return "ignore", "a service of gRPC's own"
    found = _verb(words(endpoint.name))
    if found is not None and found[0] == "read" and field_of("key", endpoint) is None:
        return ("recall", found[1]) if rows_of(endpoint.answer) else None
    return found


def _verb(names: list[str]) -> tuple[str, str] | None:
    for word in names:
        for operation, known in _VERBS:
            if word in known:
                return operation, f"it is called {word}"
    return None


def unknown_parameters(endpoint: Endpoint) -> Iterator[Parameter]:
    """Parameters of its path that say nothing known: a call of our own has to name them all the same."""
    named = {found.steps[0] for name in ("tenant", "subject", "key", "path", "purpose")
             if (found := in_parameters(name, endpoint.parameters)) and found.where == "path"}  # fmt: skip
    return (each for each in endpoint.parameters if each.place == "path" and each.name not in named)
