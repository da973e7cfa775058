"""Gathers what a virtual environment needs to run, for an image that holds nothing else.

    python scripts/rootfs.py ENVIRONMENT TARGET

Into TARGET go: the environment without pip, the interpreter's standard library, every shared library that any
of it links to with the loader, CA certificates, and a user 65532. No shell and no package manager. With it
lies `sbom.cdx.json`, a CycloneDX list of the Python distributions that are inside, with their licences.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Final

UNUSED: Final = (
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "turtledemo",
    "lib2to3",
    "ensurepip",
    "pydoc_data",
    "dist-packages",
)
"""Parts of the standard library that nothing here runs."""
PACKERS: Final = ("pip", "setuptools", "wheel", "hatchling", "editables", "pkg_resources", "_distutils_hack")
"""What has built the environment and is not needed to run it."""
SYSTEM: Final = ("/etc/ssl/certs", "/usr/share/ca-certificates", "/etc/ssl/openssl.cnf", "/etc/ld.so.cache")
"""CA certificates, and where the loader finds libraries outside its usual folders."""
OWNER: Final = "quietus:x:65532:65532:quietus:/tmp:/sbin/nologin\n"


def copy(source: Path, target: Path) -> None:
    """One file or folder to its place below TARGET; links are kept as links where they lead inside it."""
    place = target / source.relative_to("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        leave = shutil.ignore_patterns("__pycache__", *UNUSED)
        shutil.copytree(source, place, symlinks=True, ignore=leave, dirs_exist_ok=True)
    else:
        shutil.copy2(source, place)


def binaries(folder: Path) -> Iterator[Path]:
    """Every ELF file."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def libraries(found: Sequence[Path]) -> set[Path]:
    """The shared libraries that these link to, with the loader. Raises SystemExit where one is missing."""
    told = subprocess.run(["ldd", *map(str, found)], capture_output=True, text=True, check=False).stdout
    if missing := re.findall(r"(\S+) => not found", told):
        raise SystemExit(f"libraries are missing in the image to build in: {sorted(set(missing))}")
    return {Path(path) for path in re.findall(r"(?:=> )?(/\S+)(?= \(0x)", told)}


def distributed(site: Path) -> list[Distribution]:
    """The distributions of the environment, by name."""
    return sorted(distributions(path=[str(site)]), key=lambda each: str(each.name).lower())


def sbom(site: Path) -> dict[str, Any]:
    """What is inside, as CycloneDX 1.6."""
    components = []
    for each in distributed(site):
        name = str(each.name)
        purl = f"pkg:pypi/{name.lower()}@{each.version}"
        entry = {"type": "library", "name": name, "version": each.version, "purl": purl}
        licence = each.metadata.json.get("license_expression")
        components.append({**entry, **({"licenses": [{"expression": licence}]} if licence else {})})
    python = {"type": "platform", "name": "python", "version": sys.version.split()[0]}
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": [python, *components]}


def without_packers(site: Path) -> None:
    """Removes what was only there to build."""
    for path in site.iterdir():
        if re.split(r"[-.]", path.name)[0].lower() in PACKERS:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def main(arguments: Sequence[str]) -> int:
    """Gathers everything."""
    environment, target = Path(arguments[0]), Path(arguments[1])
    site = next(environment.glob("lib/python3.*/site-packages"))
    without_packers(site)
    for name in ("pip", "pip3", "hatchling"):
        for path in (environment / "bin").glob(f"{name}*"):
            path.unlink()
    for path in (environment / "bin").glob("[Aa]ctivate*"):
        path.unlink()
    copy(environment, target)
    standard = Path(sysconfig.get_path("stdlib"))
    copy(standard, target)
    for path in libraries([*binaries(environment), *binaries(standard)]):
        copy(path, target)
    for name in SYSTEM:
        if Path(name).exists():
            copy(Path(name), target)
    etc = target / "etc"
    etc.mkdir(parents=True, exist_ok=True)
    (etc / "passwd").write_text(OWNER)
    (etc / "group").write_text("quietus:x:65532:\n")
    (etc / "nsswitch.conf").write_text("hosts: files dns\n")
    for name in ("tmp", "var/lib/quietus", "var/run", "etc/quietus"):
        (target / name).mkdir(parents=True, exist_ok=True)
    (target / "tmp").chmod(0o1777)
    shutil.chown(target / "var/lib/quietus", 65532, 65532)
    (target / "sbom.cdx.json").write_text(json.dumps(sbom(site), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
