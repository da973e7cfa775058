"""A first profile out of a store's description: routes, surfaces and calls of our own, every guess marked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from quietus.describing.calls import Asker
from quietus.describing.guessing import Found, selector
from quietus.describing.nodes import Endpoint
from quietus.describing.routes_drafted import Drafted, Sorted, item_document, route_document, sort_out
from quietus.describing.writing import Guess, Noted, document

_HEAD: Final = (
    "Drafted by `quietus profile init`. Every line that ends with `guess: …` is one: look at each, mend what",
    "is wrong, and take the remark away. Then record some calls, and test this file against them:",
    "  quietus profile record, quietus profile test; at the end quietus profile try.",
)


class NothingToProbe(ValueError):
    """A description from which no profile can be made; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A drafted profile."""

    text: str
    routes: tuple[tuple[str, str, str], ...]
    """Name, operation and call of each route."""
    left: tuple[tuple[str, str], ...]
    """Calls without a route, and why."""
    guesses: int


def draft(name: str, endpoints: Iterable[Endpoint], source: str, descriptors: str | None = None) -> Draft:
    """The draft of a profile called `name`. `descriptors` is the set's file. Raises NothingToProbe."""
    found = sort_out(endpoints)
    if not found.routes:
        raise NothingToProbe(
            "no call was recognised as write, read, recall or forget: write the routes by hand"
        )
    surfaces = _surfaces(found.routes)
    if len(surfaces) < 2:
        raise NothingToProbe(
            "no call reads memories back, by key, by list or by search: nothing could be shown to be gone"
        )
    parts: dict[str, Any] = {
        "apiVersion": "quietus/v1", "kind": "Profile", "name": name, "summary": f"Drafted from {source}",
        "store": _store(found.routes),
    }  # fmt: skip
    if descriptors is not None:
        parts["descriptors"] = {"file": descriptors}
    parts["routes"] = [route_document(each) for each in found.routes]
    parts["surfaces"] = surfaces
    parts |= _own_calls(found.routes)
    text = document(parts, [*_HEAD, *_left_over(found)])
    return Draft(
        text,
        tuple((each.name, each.operation, each.endpoint.told) for each in found.routes),
        tuple((endpoint.told, reason) for endpoint, reason in found.left),
        text.count("# guess:"),
    )


def _left_over(found: Sorted) -> list[str]:
    if not found.left:
        return []
    lines = [
        "",
        "No route was made for these. A call that no route knows is screened by content; name what holds no",
        "memories as `operation: ignore`.",
    ]
    return lines + [f"  {endpoint.told}: {reason}" for endpoint, reason in found.left]


def _store(routes: list[Drafted]) -> dict[str, Any]:
    measured = "no description says it: `quietus profile try` measures it"
    told: dict[str, Any] = {
        "settling_interval": Noted("900s", f"the longest background delay; {measured}"),
        "effectuation_bound": Noted("1800s", "a leak after this is a violation"),
        "keeps_queries": Noted("unknown", f"may a query turn up in records? {measured}"),
        "write_path_reads_derived": Noted("unknown", f"may a write take over what was forgotten? {measured}"),
    }
    if any(each.operation == "forget" and "purpose" in each.fields for each in routes):
        told["knows_purposes"] = Guess(True, "a forget takes a purpose")
    return told


def _surfaces(routes: list[Drafted]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for each in routes:
        asked = _asked(each)
        if asked is None or each.endpoint.streams:  # a probe asks once and reads one answer
            continue
        kind, why, each_of, page = asked
        told: dict[str, Any] = {"name": each.name, "kind": Guess(kind, why), "each": each_of}
        told |= {"enumerates": True} if each_of == "subject" else {}
        told |= Asker(each).wired(each_of)
        if each_of == "key":
            gone = ["NOT_FOUND"] if each.endpoint.wire == "grpc" else [404, 410]
            told["clean"] = Guess([{"status": gone}], "how it says that there is nothing")
        told |= page
        told |= rows_document(each) if each.rows else {}
        out.append(told)
    unseen = "copies and logs that no call of the API shows"
    out.append({"name": "backups", "kind": "unprobeable", "note": unseen})
    return out


def _asked(each: Drafted) -> tuple[str, str, str, dict[str, Any]] | None:
    """How a route would be probed: the surface's kind and why, what it is asked for each of, its pages."""
    if each.operation == "read" and "key" in each.fields:
        return "primary", "read by key", "key", {}
    if each.operation != "recall" or not each.rows:
        return None
    if "query" in each.fields:
        return "index", "found by search", "text", {}
    if "vector" in each.fields:
        return "index", "found by vector", "vector", {}
    if _names_key(each):
        return "history", "asked by key, and no read of one", "key", {}
    return ("index", "a list", "subject", Asker(each).pages()) if "subject" in each.fields else None


def rows_document(drafted: Drafted) -> dict[str, Any]:
    """`items` and `item` of a surface."""
    rows = drafted.rows[0]
    return {"items": Guess(selector("body", rows.items), "as its route"), "item": item_document(rows)}


def _names_key(each: Drafted) -> bool:
    found: Found | None = Asker(each).key
    return found is not None and found.where == "path"


def _own_calls(routes: list[Drafted]) -> dict[str, Any]:
    """Controls, canary, remedies and forgets: how the sidecar itself asks."""
    out: dict[str, Any] = {}
    listing = next((each for each in routes if each.operation == "recall" and each.rows
                    and not {"query", "vector"} & each.fields.keys() and not _names_key(each)
                    and not Asker(each).needs("subject")), None)  # fmt: skip
    if listing is not None:
        asker = Asker(listing)
        out["controls"] = {**asker.wired(None), **asker.pages(), **rows_document(listing)}
    writing = next((each for each in routes if each.operation == "write"
                    and {"content", "subject"} <= each.fields.keys()), None)  # fmt: skip
    if writing is not None:
        asker = Asker(writing)
        out["canary"] = {"write": asker.wired("write")}
        keyed = next((rows for rows in writing.rows if "key" in rows.item), None)
        if keyed is not None:
            rows = next((rows for rows in writing.rows if rows.single), keyed)
            inner = (*rows.items, *(() if rows.single else ("0",)), *rows.item["key"])
            path = selector("body", inner).replace("['0']", "[0]")
            out["canary"]["key"] = Guess(path, "where the answer has the new key")
    forgets = [each for each in routes if each.operation == "forget"]
    remedy = next((each for each in forgets if "key" in each.fields and "subject" not in each.fields),
                  next((each for each in forgets if "key" in each.fields), None))  # fmt: skip
    if remedy is not None:
        out["remedies"] = {"delete_record": Asker(remedy).wired("delete")}
    told: dict[str, Any] = {}
    for kind, dimension, use in (
        ("subject", "subject", "whole"),
        ("keys", "key", "keys"),
        ("path", "path", "path"),
    ):
        one = next((each for each in forgets if dimension in each.fields
                    and (kind != "keys" or each.fields["key"].many)), None)  # fmt: skip
        if one is not None:
            told[kind] = Asker(one).wired(use)
    if "subject" not in told and remedy is not None:
        told["each_record"] = Guess("delete_record", "no forget takes a subject")
    if told:
        out["forgets"] = told
    return out
