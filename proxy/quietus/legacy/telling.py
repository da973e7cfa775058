"""How the demo puts things: both sides next to each other, and whether each step held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text


class Telling:
    """Prints the story and keeps count of what held. Every check is made on answers that came."""

    def __init__(self, console: Console, marks: tuple[str, ...]) -> None:
        self.console = console
        self.held = 0
        self.failed: list[str] = []
        self._marks = marks
        self._chapter = 0

    def opening(self, title: str, text: str) -> None:
        """The first words."""
        self.console.print(
            Panel(Text(text), title=f"[bold]{escape(title)}[/]", border_style="cyan", box=box.ROUNDED)
        )

    def chapter(self, title: str, text: str) -> None:
        """A new step."""
        self._chapter += 1
        self.console.print()
        self.console.print(f"[bold cyan]{self._chapter}. {escape(title)}[/]")
        self.console.print(Text(text, style="default"))

    def sides(self, direct: Sequence[str | Text], through: Sequence[str | Text]) -> None:
        """What the store says when asked directly, and what comes through the sidecar."""
        table = Table(box=box.ROUNDED, expand=True, show_lines=False, padding=(0, 1))
        table.add_column("the store, asked directly", ratio=1, header_style="bold yellow")
        table.add_column("the same question, through Quietus", ratio=1, header_style="bold green")
        table.add_row(_stacked(direct), _stacked(through))
        self.console.print(table)

    def memories(self, rows: Sequence[dict[str, Any]]) -> list[Text]:
        """Memories as lines; what tells of the forgotten stands out."""
        if not rows:
            return [Text("nothing found", style="dim")]
        lines = []
        for row in rows:
            value = str(row.get("value"))
            told = any(mark in value for mark in self._marks)
            line = Text("● " if told else "○ ", style="bold red" if told else "green")
            line.append(_short(value), style="red" if told else "default")
            line.append(f"  ({_whose(row)})", style="dim")
            lines.append(line)
        return lines

    def check(self, held: bool, claim: str) -> bool:
        """Says whether a claim held; the story holds when all of them did."""
        if held:
            self.held += 1
        else:
            self.failed.append(claim)
        sign, style = ("✓", "green") if held else ("✗ did not hold:", "bold red")
        self.console.print(Text(f"   {sign} {claim}", style=style))
        return held

    def closing(self, good: str, bad: str) -> bool:
        """The last words; returns whether everything held."""
        self.console.print()
        if not self.failed:
            self.console.print(Panel(Text(good), border_style="green", box=box.ROUNDED))
            return True
        listed = "\n".join(f"✗ {claim}" for claim in self.failed)
        self.console.print(Panel(Text(f"{bad}\n{listed}"), border_style="red", box=box.ROUNDED))
        return False


def _stacked(lines: Sequence[str | Text]) -> Text:
    return Text("\n").join([line if isinstance(line, Text) else Text(line) for line in lines])


def _short(text: str, width: int = 110) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def _whose(row: dict[str, Any]) -> str:
    key, subject = str(row.get("key")), row.get("subject")
    if subject is None:
        return (
            "from the chunk cache, about nobody in particular" if key.startswith("chunk-") else "about nobody"
        )
    return f"the {row.get('purpose')} digest of {subject}" if key.startswith("digest") else f"about {subject}"
