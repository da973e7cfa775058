"""Makes the Python messages, with their types, from the `.proto` files.

    python scripts/proto.py            # write them
    python scripts/proto.py --check    # exit 1 if one is not current

They lie beside each other in `quietus.stubs`, named after package and version: `quietus.memory.v1` is
`quietus.stubs.memory_v1_pb2`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
STUBS = ROOT / "proxy" / "quietus" / "stubs"


def sources() -> list[Path]:
    """The `.proto` files, relative to their folder."""
    return sorted(path.relative_to(PROTO) for path in PROTO.rglob("*.proto"))


def made() -> Iterator[tuple[Path, str]]:
    """Every file to be written, and what it should hold."""
    import grpc_tools
    from grpc_tools import protoc

    well_known = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        names = [str(path) for path in sources()]
        options = [f"-I{PROTO}", f"-I{well_known}", f"--python_out={folder}", f"--pyi_out={folder}"]
        if protoc.main(["protoc", *options, *names]) != 0:
            raise SystemExit("the compiler refused them; it says why above")
        for path in sources():
            package, version = path.parent.parts[-2:]
            for suffix in (".py", ".pyi"):
                text = (Path(folder) / path.parent / f"{path.stem}_pb2{suffix}").read_text(encoding="utf-8")
                yield STUBS / f"{package}_{version}_pb2{suffix}", text


def main(arguments: Sequence[str]) -> int:
    """Writes every file, or with `--check` only compares."""
    current = True
    for path, text in made():
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is not current: run make proto")
            current = False
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
