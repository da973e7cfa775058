"""Writes the tables that are made from code into the pages that show them, each between its two markers.

    python scripts/tables.py            # write them
    python scripts/tables.py --check    # exit 1 if one is not current

The code is what holds: the erasure machine (`quietus.core.states`), the commands, the settings with
their sentences (`quietus.settings`), the metric families and the problems.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from typer.main import get_command

from quietus.cli import app
from quietus.core.problems import PROBLEMS
from quietus.core.states import diagram
from quietus.metrics import FAMILIES
from quietus.settings import Settings

ROOT = Path(__file__).resolve().parent.parent


def settings(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Every setting: its dotted key, its default as one writes it, and what it means."""
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        below = list(_models(field.annotation))
        if field.description:
            default = "" if field.is_required() else _written(field.get_default(call_default_factory=True))
            yield key, default, field.description
        elif not below:
            yield key, "", ""
        many = "[]" if str(field.annotation).startswith("tuple") else ""
        for part in below:
            if not str(field.annotation).startswith("dict"):
                yield from settings(part, f"{key}{many}.")


def settings_table() -> str:
    """The settings as Markdown."""
    lines = ["| key | default | means |", "|---|---|---|"]
    for key, default, says in settings():
        lines.append(f"| `{key}` | {default and f'`{default}`'} | {_cell(says)} |")
    return "\n".join(lines)


def metrics_table() -> str:
    """The metric families as Markdown."""
    lines = ["| metric | kind | labels | says |", "|---|---|---|---|"]
    for name, family in FAMILIES.items():
        lines.append(f"| `{name}` | {family.kind} | {', '.join(family.labels)} | {_cell(family.help)} |")
    return "\n".join(lines)


def problems_table() -> str:
    """The problems as Markdown."""
    lines = ["| name | status | gRPC | reason | says | Retry-After |", "|---|---|---|---|---|---|"]
    for name, problem in PROBLEMS.items():
        reason = problem.reason.value and f"`{problem.reason.value}`"
        retry = problem.retry.value.replace("_", " ")
        lines.append(
            f"| `{name}` | {problem.status} | {problem.code} | {reason} | {_cell(problem.title)} | {retry} |"
        )
    return "\n".join(lines)


def commands(group: Any = None, prefix: str = "quietus") -> Iterator[tuple[str, str]]:
    """Every command that is not hidden: how it is called, and what it does."""
    above: Any = group or get_command(app)
    for name, command in above.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", (command.help or "").strip().partition("\n")[0]


def commands_table() -> str:
    """The commands as Markdown."""
    lines = ["| command | does |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(does)} |" for name, does in commands()]
    return "\n".join(lines)


TABLES: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    "states": ("ARCHITECTURE.md", diagram),
    "problems": ("README.md", problems_table),
    "commands": ("README.md", commands_table),
    "settings": ("README.md", settings_table),
    "metrics": ("README.md", metrics_table),
}
"""Name of the markers: the page, and what makes the table."""


def shown(name: str) -> str:
    """What stands between the markers of that name now."""
    return _parts(name)[1].strip()


def main(arguments: Sequence[str]) -> int:
    """Writes every table, or with `--check` only compares."""
    if "--check" in arguments:
        return 0 if all(shown(name) == make() for name, (_, make) in TABLES.items()) else 1
    for name, (page, make) in TABLES.items():
        before, _, after = _parts(name)
        (ROOT / page).write_text(f"{before}\n{make()}\n{after}", encoding="utf-8")
    return 0


def _parts(name: str) -> tuple[str, str, str]:
    page = TABLES[name][0]
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.fullmatch(rf"(.*<!-- {name} -->)(.*)(<!-- /{name} -->.*)", text, flags=re.DOTALL)
    if found is None:
        raise ValueError(f"{page} has no <!-- {name} --> ... <!-- /{name} -->")
    return found[1], found[2], found[3]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _models(part)


def _written(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | tuple):
        return "{}" if isinstance(value, dict) else f"[{', '.join(map(str, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
