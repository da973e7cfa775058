"""The documentation: a site that builds, and pages that can be followed to the letter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.deploy.tooling import ROOT, run
from tests.harness.servers import free_port

DOCS = ROOT / "docs"
BIN = Path(sys.executable).parent


def blocks(page: str, language: str, below: str = "") -> list[str]:
    """The blocks of code of a page in that language, those below a heading only."""
    text = (DOCS / page).read_text()
    if below:
        text = re.split(r"(?m)^## ", text.split(f"## {below}\n", 1)[1])[0]
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@contextmanager
def running(command: str, folder: Path, port: int) -> Iterator[None]:
    """A command of a page, until the end; waits until somebody listens on the port."""
    log = (folder / f"{port}.log").open("wb")
    env = {**os.environ, "PYTHONPATH": str(ROOT / "proxy")}
    process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, stdout=log, stderr=log, env=env)
    try:
        end = time.monotonic() + 60
        while True:
            assert process.poll() is None and time.monotonic() < end, (folder / f"{port}.log").read_text()
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/nothing", timeout=2)
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                threading.Event().wait(0.1)
        yield
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def on_free_ports(text: str, ports: dict[str, int]) -> str:
    """The text with the documentation's ports replaced by free ones, and the commands of this environment."""
    for port, free in ports.items():
        text = re.sub(rf"(?<!\d){port}(?!\d)", str(free), text)
    text = text.replace(".venv/bin/quietus", f"{BIN / 'quietus'}")
    text = text.replace("legacy serve", f"legacy serve --listen 127.0.0.1:{ports['8000']}")  # 8000 of itself
    return re.sub(r"(?m)^chroma ", f"{BIN / 'chroma'} ", text)


@pytest.fixture
def ports() -> dict[str, int]:
    return {port: free_port() for port in ("8000", "8700", "8710")}


@pytest.mark.timeout(120)
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    code, out, err = run(BIN / "mkdocs", "build", "--strict", "-d", tmp_path, folder=ROOT)
    assert code == 0, out + err
    assert (tmp_path / "runbooks" / "QuietusGateOpen" / "index.html").exists()


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in DOCS.rglob("*.md"):
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


@pytest.mark.timeout(180)
def test_the_quick_start_can_be_followed(tmp_path: Path, ports: dict[str, int]) -> None:
    store, sidecar, client, last = (
        on_free_ports(block, ports)
        for block in blocks("quick-start.md", "sh", "By hand, with the same store")
    )
    with ExitStack() as stack:
        stack.enter_context(running(store.strip(), tmp_path, ports["8000"]))
        stack.enter_context(running(sidecar.strip().replace("\\\n", " "), tmp_path, ports["8700"]))
        code, out, err = run("bash", "-euo", "pipefail", "-c", client, folder=tmp_path)
        assert code == 0, err
        _, forgotten, direct, wider, inside = out.strip().splitlines()
        assert "erased" in forgotten
        assert "Voltaire" in direct, "the store has stopped lying"
        assert "Voltaire" not in wider
        assert "erasure-not-settled" in inside
        listed = (
            last.replace("ID", "").splitlines()[0].replace("list", f"list --admin 127.0.0.1:{ports['8710']}")
        )
        code, out, err = run("bash", "-c", f"{listed} --token-file admin.token", folder=tmp_path)
        assert code == 0, out + err
        assert "er_" in out


@pytest.mark.timeout(180)
@pytest.mark.parametrize("policy", ["observe", "default"])
def test_the_page_on_chroma_can_be_followed(tmp_path: Path, ports: dict[str, int], policy: str) -> None:
    install, *serve = blocks("sidecar.md", "sh", "Chroma")
    store = on_free_ports(install.splitlines()[-1], ports)
    command = (
        on_free_ports(serve[0], ports)
        .strip()
        .replace("\\\n", " ")
        .replace("--policy observe", f"--policy {policy}")
    )
    assert f"--policy {policy}" in command
    (client,) = (on_free_ports(block, ports) for block in blocks("sidecar.md", "python", "Chroma"))
    (look,) = (
        on_free_ports(block, ports) for block in blocks("sidecar.md", "sh", "What would have been refused")
    )
    with ExitStack() as stack:
        stack.enter_context(running(store, tmp_path, ports["8000"]))
        stack.enter_context(running(command, tmp_path, ports["8700"]))
        code, out, err = run(sys.executable, "-c", client, folder=tmp_path)
        assert code == 0, err
        assert out.strip() == "[['b1']]"
        code, out, _ = run("bash", "-c", look)
        assert code == 0
        assert f'mode="{"observe" if policy == "observe" else "enforce"}"' in out


def test_commands_that_pages_name_exist() -> None:
    from scripts.tables import commands

    known = {name for name, _ in commands()} | {"quietus inject"}
    for page in (*DOCS.glob("*.md"), *DOCS.glob("runbooks/*.md")):
        for line in re.findall(r"(?m)^(?:\$ |.*-- |\.venv/bin/)?quietus ([a-z].*)$", page.read_text()):
            words = re.findall(r"[a-z]+", line)
            said = {f"quietus {words[0]}", " ".join(["quietus", *words[:2]])}
            assert said & known, f"{page.name}: quietus {line}"
