"""A receipt as one page for people: self-contained, nothing is loaded, the signed JSON stands inside."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from string import Template
from typing import Any, Final

from quietus.shown_receipts import ReceiptView

_SAYS: Final = {
    "compliant": "Everything that was declared was looked at and found clean.",
    "partial": "What was looked at was found clean. Not everything could be looked at: see below.",
    "unconfirmed": "Nothing may be claimed about it yet.",
}
_PAGE: Final = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Receipt $id</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c}
table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}
td,th{border-bottom:1px solid #ccc;padding:.35rem .5rem;text-align:left;vertical-align:top}
th{font-weight:600}code{word-break:break-all}.word{font-size:1.4rem;font-weight:600}
</style></head><body>
<h1>Receipt of an erasure</h1>
<p class="word">$verdict</p><p>$says</p><p>$why</p>
<h2>What was asked</h2>$demand
<h2>What was seen</h2>$surfaces
<h2>What was not shown</h2>$unseen
<h2>What people did</h2>$acts
<h2>Overrides and by-passes</h2>$overrides
<h2>What this receipt cannot say</h2>$limits
<h2>How to check it</h2>
<p>The signed receipt is the JSON below. Save it, and run
<code>quietus receipt verify FILE --public-key KEYS</code> with the published keys.</p>$proof
<script type="application/json" id="receipt">$json</script>
</body></html>
""")


def page(receipt: ReceiptView) -> str:
    """The page of a signed receipt. Nothing in it is taken for mark-up."""
    result, demand, times = receipt["result"], receipt["demand"], receipt["times"]
    exposure = times["exposure_ms"]
    facts = {
        "erasure": receipt["erasure"], "store": receipt["store"], "basis": demand["basis"],
        "reference": demand["reference"], "received": demand["received_at"],
        "entered": demand["requested_at"], "due": demand["due_at"],
        "acknowledged by the store": times["acknowledged_at"], "settled": times["settled_at"],
        "recalled after the acknowledgement for": None if exposure is None else f"{exposure / 1000:.3f} s",
        "as of": receipt["issued_at"],
    }  # fmt: skip
    seen = [(s["name"], s["kind"], s["outcome"], s["control"], s["probed_at"]) for s in receipt["surfaces"]]
    unseen = [(s["name"], s["outcome"], s["reason"]) for s in receipt["not_checked"]]
    acts = [(a["at"], a["type"], a["actor"], a["reason"]) for a in receipt["acts"]]
    passes = [(o["begun_at"], o["until"], o["actor"], o["reason"]) for o in receipt["overrides"]]
    passes += [("", "", cause, str(count)) for cause, count in receipt["bypasses"]["counts"].items()]
    proof = {
        "commitment to whom it is about": receipt["about"]["commitment"],
        "newest event of the ledger": receipt["sequence"], "its hash": receipt["chain"]["head"],
        "profile": receipt["profile"]["sha256"], "policy": receipt["policy"]["sha256"],
        "key": receipt["signature"]["key"], "signature": receipt["signature"]["value"],
    }  # fmt: skip
    missing = [(text,) for text in result["missing_for_compliant"]]
    return _PAGE.substitute(
        id=escape(receipt["erasure"]),
        verdict=escape(result["verdict"].upper()),
        says=_SAYS[result["verdict"]],
        why=escape(result["why"]),
        demand=_table(facts.items()),
        surfaces=_table(seen, ("surface", "kind", "outcome", "control", "looked at")),
        unseen=_table(unseen, ("surface", "outcome", "why"))
        + _table(missing, ("missing for “compliant”",)),
        acts=_table(acts, ("when", "act", "who", "why")),
        overrides=_table(passes, ("from", "until", "who, or cause", "why, or count")),
        limits=_table([(text,) for text in receipt["limits"]]),
        proof=_table(proof.items()),
        json=json.dumps(receipt, ensure_ascii=False, sort_keys=True).replace("<", "\\u003c"),
    )


def _table(rows: Iterable[Iterable[Any]], heads: Iterable[str] = ()) -> str:
    lines = ["<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    if not lines:
        return "<p>Nothing.</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{''.join(lines)}</table>"


def _cell(value: Any) -> str:
    return "–" if value is None or value == "" else escape(str(value))
