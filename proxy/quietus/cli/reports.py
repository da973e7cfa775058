"""`quietus report`: what happened since a day, for whoever answers for it: Markdown, JSON, or a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from html import escape
from string import Template
from typing import Annotated, Any, Final

import typer

from quietus.app import SystemClock
from quietus.cli.asking import Admin, Config, Json, TokenFile, ask
from quietus.cli.client import Client
from quietus.cli.report_sums import summed
from quietus.cli.root import fail, say
from quietus.views import stamp
from quietus.whys import span

_PAGE: Final = "500"


class Form(StrEnum):
    """How a report is written."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


def report(
    since: Annotated[str, typer.Option(help="A day or a time, such as 2027-03-01.")],
    form: Annotated[Form, typer.Option("--format", help="markdown, html or json.")] = Form.MARKDOWN,
    config: Config = None,
    admin: Admin = None,
    token_file: TokenFile = None,
    json: Json = False,
) -> None:
    """Say what became of the erasures that were asked for since a day; nobody is named.

    Example:

      quietus report --since 2027-03-01 --format html > march.html
    """
    try:
        begun = datetime.fromisoformat(since)
    except ValueError:
        fail("--since is a day or a time, such as 2027-03-01")
    begun = begun if begun.tzinfo else begun.replace(tzinfo=UTC)
    until = stamp(SystemClock().now()) or ""
    views = ask(config, admin, token_file, lambda c: list(_asked_since(c, begun)))
    found = summed(views, begun.isoformat(), until)
    if json or form is Form.JSON:
        say(found)
    else:
        typer.echo(page(found) if form is Form.HTML else markdown(found))


def _asked_since(client: Client, begun: datetime) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    while True:
        got = client.get("/v1/erasures", {"limit": _PAGE, "cursor": cursor})
        for view in got["erasures"]:
            # Not in the order of their dates: a clock may have jumped, or a ledger been completed.
            if datetime.fromisoformat(view["requested_at"]) >= begun:
                yield view
        cursor = got["next"]
        if cursor is None:
            return


def _sections(found: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Head lines with rows of words; the first row of each names the columns."""
    settle, exposed = found["seconds_to_settle"], found["seconds_exposed"]
    return [
        ("States", [("state", "erasures"), *_counted(found["states"])]),
        ("Verdicts", [("verdict", "erasures"), *_counted(found["verdicts"])]),
        ("Grounds", [("ground", "erasures"), *_counted(found["bases"])]),
        ("Times", [
            ("from the acknowledgement", "erasures", "median", "95 %", "longest"),
            ("until nobody recalled it, shown", *_spread(settle)),
            ("to the last recall seen (a lower bound)", *_spread(exposed)),
        ]),
        ("Open", [("erasure", "state", "due", "why"),
                  *((o["id"], o["state"], o["due_at"][:10], o["why"]) for o in found["open"])]),
        ("Past their legal date", [("erasure",), *((name,) for name in found["past_their_legal_date"])]),
        ("Leaking now", [("surface", "erasures"), *_counted(found["leaking_now"])]),
        ("Not checked", [("surface", "outcome", "erasures"), *(
            (each["surface"], each["outcome"], str(each["erasures"])) for each in found["not_checked"])]),
        ("Missing for “compliant”", [("what", "erasures"), *_counted(found["missing_for_compliant"])]),
        ("By people", [("what", "erasures"), ("released without proof", str(found["released_by_people"])),
                       ("under a legal hold", str(found["held"])),
                       ("suppressed, not erased", str(found["suppressed"]))]),
    ]  # fmt: skip


def _counted(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(name, str(count)) for name, count in counts.items()]


def _spread(told: Mapping[str, Any]) -> tuple[str, ...]:
    words = ("–" if told[name] is None else span(told[name]) for name in ("median", "p95", "most"))
    return (str(told["count"]), *words)


def markdown(found: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    late = f"{found['recalled_after_acknowledgement']} were still recalled after the acknowledgement."
    head = f"As of {found['until']}: {found['erasures']} erasures. {late}"
    lines = [f"# Erasures since {found['since'][:10]}", "", head]
    for title, (heads, *rows) in _sections(found):
        lines += ["", f"## {title}", ""]
        if not rows:
            lines.append("None.")
            continue
        lines += [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


_HTML: Final = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Erasures since $since</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid #ccc;padding:.3rem .5rem;text-align:left}
svg{width:100%;height:auto}text{font:13px system-ui,sans-serif}</style></head><body>
<h1>Erasures since $since</h1><p>As of $until: $erasures erasures. $recalled were still recalled after the
store had acknowledged them.</p>$charts$tables</body></html>
""")
_BARS: Final = {
    "compliant": "#2a7", "settled": "#2a7", "partial": "#c90", "settling": "#c90", "requested": "#c90",
    "leaking": "#c33", "violation": "#900", "relapsed": "#c33",
}  # fmt: skip


def page(found: Mapping[str, Any]) -> str:
    """The report as one page; nothing is loaded."""
    tables = []
    for title, (heads, *rows) in _sections(found):
        head = "".join(f"<th>{escape(name)}</th>" for name in heads)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        inside = f"<table><tr>{head}</tr>{body}</table>" if rows else "<p>None.</p>"
        tables.append(f"<h2>{escape(title)}</h2>{inside}")
    return _HTML.substitute(
        since=escape(found["since"][:10]), until=escape(found["until"]), erasures=found["erasures"],
        recalled=found["recalled_after_acknowledgement"],
        charts=bars("By state", found["states"]) + bars("By verdict", found["verdicts"]),
        tables="".join(tables),
    )  # fmt: skip


def bars(title: str, counts: Mapping[str, int]) -> str:
    """Counts as a bar chart (SVG)."""
    most = max(counts.values(), default=0)
    if not most:
        return ""
    rows = []
    for place, (name, count) in enumerate(counts.items()):
        y, wide = place * 26, 600 * count / most
        rows.append(
            f'<text x="0" y="{y + 17}">{escape(name)}</text>'
            f'<rect x="130" y="{y + 4}" width="{wide:.1f}" height="18" fill="{_BARS.get(name, "#888")}"/>'
            f'<text x="{140 + wide:.1f}" y="{y + 17}">{count}</text>'
        )
    body = "".join(rows)
    return (f'<h2>{escape(title)}</h2><svg viewBox="0 0 800 {len(counts) * 26 + 4}" role="img" '
            f'aria-label="{escape(title)}">{body}</svg>')  # fmt: skip


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(report)
