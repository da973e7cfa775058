"""What is installed holds all that runs: the code, the shipped policies and profiles, the licence."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.house import PACKAGE, ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def shipped(folder: Path, inside: str) -> set[str]:
    files = (path for kind in ("*.yaml", "*.json") for path in folder.rglob(kind))
    return {f"{inside}/{path.relative_to(folder).as_posix()}" for path in files}


def test_every_module_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    modules = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*.py")}
    assert modules | {"quietus/py.typed"} <= set(wheel.namelist())


def test_shipped_documents_are_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    assert shipped(ROOT / "policies", "quietus/_policies") <= set(wheel.namelist())
    assert {"quietus/_docs/memory-tool.openapi.yaml"} <= set(wheel.namelist())


def test_nothing_else_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    strange = [name for name in wheel.namelist() if not name.startswith(("quietus/", "quietus-"))]
    assert strange == []
    assert not [name for name in wheel.namelist() if "cache" in name]


def test_command_and_licence_are_declared(wheel: zipfile.ZipFile) -> None:
    entries = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "quietus = quietus.cli:main" in wheel.read(entries).decode()
    licence = next(name for name in wheel.namelist() if name.endswith("licenses/LICENSE"))
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
