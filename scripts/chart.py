"""Writes the chart's README from its values, and puts rules and dashboards where the chart can read them.

    python scripts/chart.py

`helm/quietus/README.md` is `README.tmpl.md` with the table of `values.yaml` in it: a comment `# -- TEXT`
above a key says what the key means. A chart can read no file outside its folder: `files/` holds copies of
`dashboards/`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
CHART: Final = ROOT / "helm" / "quietus"
_MARK: Final = "<!-- values -->"
_KEY: Final = re.compile(r"^( *)([A-Za-z][A-Za-z0-9]*):")
_SAYS: Final = re.compile(r"^ *# -- (.*)$")


def rows(text: str) -> Iterator[tuple[str, Any, str]]:
    """Key in full, default and meaning of each value that is explained. Raises ValueError."""
    values = yaml.safe_load(text)
    above: list[tuple[int, str]] = []
    says = ""
    for number, line in enumerate(text.splitlines(), 1):
        if found := _SAYS.match(line):
            says = found[1]
            continue
        key = _KEY.match(line)
        if key is None:
            continue
        indent = len(key[1])
        above = [each for each in above if each[0] < indent]
        above.append((indent, key[2]))
        place = [name for _, name in above]
        if says:
            yield ".".join(place), _at(values, place), says
        elif not isinstance(_at(values, place), dict) and not _explained(above):
            raise ValueError(
                f"values.yaml:{number}: {'.'.join(place)} is not explained: write `# -- …` above"
            )
        says = ""


def _explained(above: list[tuple[int, str]]) -> bool:
    # Below a key that is explained as a whole (resources) nothing more needs to be said.
    return any(name == "resources" for _, name in above)


def _at(values: Any, place: list[str]) -> Any:
    for part in place:
        values = values[part]
    return values


def readme() -> str:
    """The README as it should be."""
    template = (CHART / "README.tmpl.md").read_text(encoding="utf-8")
    lines = ["| key | default | means |", "|---|---|---|"]
    for key, default, says in rows((CHART / "values.yaml").read_text(encoding="utf-8")):
        shown = json.dumps(default, ensure_ascii=False).replace("|", "\\|")
        lines.append(f"| `{key}` | `{shown}` | {says.replace('|', chr(92) + '|')} |")
    before, after = template.split(_MARK)
    return f"{before}{chr(10).join(lines)}{after}"


def files() -> dict[Path, Path]:
    """Copies in the chart, and what they are copies of."""
    found = {}
    for kind, place in (("rules", "rules/*.yaml"), ("dashboards", "json/*.json")):
        for source in sorted((ROOT / "dashboards").glob(place)):
            found[CHART / "files" / kind / source.name] = source
    return found


def main() -> int:
    """Writes everything."""
    (CHART / "README.md").write_text(readme(), encoding="utf-8")
    shutil.rmtree(CHART / "files", ignore_errors=True)
    for copy, source in files().items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    return 0


if __name__ == "__main__":
    sys.exit(main())
