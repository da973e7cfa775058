"""The Dockerfile, and the image: built for real, with the demo run in it, where there is what that takes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import rootfs
from tests.deploy.tooling import ROOT, TOOLS, run

LINES = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
STAGES = "\n".join(LINES).split("\nFROM ")


def test_hadolint_finds_nothing() -> None:
    code, out, err = run(Path(sys.executable).with_name("hadolint"), "Dockerfile", folder=ROOT)
    assert code == 0, out + err


def test_hadolint_would_find_something(tmp_path: Path) -> None:
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM debian\nRUN apt-get install python3\n")
    code, out, _ = run(Path(sys.executable).with_name("hadolint"), bad)
    assert code != 0
    assert "DL3008" in out


@pytest.mark.requirement("R200")
def test_the_last_stage_is_nothing_but_what_runs() -> None:
    final = STAGES[-1]
    assert final.startswith("scratch"), "whatever it is built on would come along, a shell included"
    assert "\nUSER 65532:65532" in final
    assert not re.search(r"(?m)^RUN ", final)
    assert re.search(r'(?m)^ENTRYPOINT \["/opt/quietus/bin/quietus"\]', final)
    assert "ARG BUILD=" in STAGES[0], "the image to build in is the user's choice"
    assert "FROM ${BUILD}" in "\n".join(LINES)
    assert "--require-hashes" in "\n".join(LINES)
    for label in ("title", "description", "licenses", "version", "revision", "created"):
        assert f"org.opencontainers.image.{label}=" in final, label


def test_everything_that_is_copied_is_let_into_the_build() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        part
        for line in LINES
        if line.startswith("COPY ") and "--from" not in line
        for part in line.split()[1:-1]
    }
    assert copied == allowed
    assert all((ROOT / each).exists() for each in copied)
    project = (ROOT / "pyproject.toml").read_text()
    shipped = re.search(r"(?m)^only-include = \[(.*)\]", project)
    assert shipped is not None
    for path in re.findall(r'"([^"]+)"', shipped[1]):
        assert any(path == each or path.startswith(f"{each}/") for each in copied), (
            f"the package wants {path}"
        )


@pytest.mark.requirement("R200")
def test_every_ledger_that_the_chart_offers_has_its_client_inside() -> None:
    assert any("-r requirements-image.lock" in line for line in LINES)
    locked = (ROOT / "requirements-image.lock").read_text()
    for client in ("redis", "asyncpg", "opentelemetry-exporter-otlp-proto-http"):
        assert re.search(rf"(?m)^{client}==", locked), client


@pytest.mark.requirement("R200")
@pytest.mark.timeout(1500)
def test_it_builds_and_the_demo_runs_in_it_as_nobody_on_a_read_only_root() -> None:
    missing = [each for each in ("buildah", "mmdebstrap", "crun", "unshare") if shutil.which(each) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not here: apt-get install buildah crun mmdebstrap")
    built = subprocess.run(
        ["scripts/image.sh", str(TOOLS / "image")], cwd=ROOT, capture_output=True, text=True, timeout=1400,
        check=False,
    )  # fmt: skip
    if built.returncode == 2:
        pytest.skip(built.stderr.strip().rpartition("\n")[2])
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    assert built.stdout.rstrip().endswith("quietus demo: exit 0, as 65532, on a read-only root")


def test_the_list_of_what_is_inside_is_whole() -> None:
    site = next(Path(sys.prefix).glob("lib/python3.*/site-packages"))
    found = rootfs.sbom(site)
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    names = {each["name"].lower() for each in found["components"]}
    assert {"python", "aiohttp", "grpcio", "cryptography"} <= names
    assert all(each["version"] for each in found["components"])
    assert json.dumps(found)


def test_every_library_is_found() -> None:
    site = next(Path(sys.prefix).glob("lib/python3.*/site-packages"))
    found = rootfs.libraries(list(rootfs.binaries(site / "aiohttp")))
    assert any(path.name.startswith("libc.so") for path in found)
    assert any("ld-linux" in path.name for path in found), "without the loader nothing starts"
