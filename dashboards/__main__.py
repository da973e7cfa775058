"""Writes the dashboards: python -m dashboards."""

from __future__ import annotations

from dashboards.build import FOLDER, rendered

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in rendered().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
