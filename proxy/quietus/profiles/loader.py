"""Loading profiles: from a file or by the name of a shipped one, with every fault and its line."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from quietus.core.exchange import Wire
from quietus.profiles.compiled import CompileFaults
from quietus.profiles.descriptors import Descriptors, NoDescriptors, of_module
from quietus.profiles.document import Document, DocumentError, parse_document
from quietus.profiles.faults import Fault, ProfileError
from quietus.profiles.models import ProfileModel
from quietus.profiles.profile import Profile
from quietus.profiles.rpc import WIRES, Wiring

Tell = Callable[[frozenset[str]], bytes]
"""Asks for the descriptor set of these services. Raises NoDescriptors."""
_SUFFIXES = (".yaml", ".yml", ".json")
_PACKAGE = Path(__file__).resolve().parent.parent


def shipped_directory() -> Path:
    """Where the shipped profiles are: in the package, or in the checkout that it runs from."""
    packaged = _PACKAGE / "_policies" / "profiles"
    return packaged if packaged.is_dir() else _PACKAGE.parent.parent / "policies" / "profiles"


def shipped_names() -> list[str]:
    """The names of the shipped profiles."""
    return sorted(path.stem for path in shipped_directory().glob("*.yaml"))


def find_profile(name_or_path: str | Path) -> Path:
    """The file of a profile. Raises ProfileError."""
    text = str(name_or_path)
    if "/" in text or text.endswith(_SUFFIXES):
        path = Path(text)
    else:
        path = shipped_directory() / f"{text}.yaml"
        if not path.is_file():
            names = ", ".join(shipped_names()) or "none"
            raise ProfileError(
                [Fault(text, 1, "no profile of this name ships", f"the names are {names}; or give a path")]
            )
    if not path.is_file():
        raise ProfileError([Fault(text, 1, "there is no such file")])
    return path


def load_profile(
    name_or_path: str | Path, wires: Collection[Wire] = WIRES, descriptors: bytes | Tell | None = None
) -> Profile:
    """A profile, compiled. Raises ProfileError with everything that is wrong with it.

    `wires` are those that the store is reached by; `descriptors` is the descriptor set that the store itself
    has told, or asks it for one, for a profile that names none.
    """
    path = find_profile(name_or_path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ProfileError([Fault(str(path), 1, f"cannot be read: {error.strerror}")]) from None
    return parse_profile(data, str(path), wires, descriptors)


def parse_profile(
    data: bytes | str,
    file: str = "profile.yaml",
    wires: Collection[Wire] = WIRES,
    descriptors: bytes | Tell | None = None,
) -> Profile:
    """A profile from its text, compiled. A descriptor set that it names is read. Raises ProfileError."""
    raw = data.encode("utf-8") if isinstance(data, str) else data
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ProfileError([Fault(file, 1, "the file is not UTF-8")]) from None
    try:
        document = parse_document(file, text)
    except DocumentError as error:
        raise ProfileError([error.fault]) from None
    if not isinstance(document.value, dict):
        raise ProfileError([Fault(file, 1, "a profile is a mapping", "see policies/profiles for examples")])
    try:
        model = ProfileModel.model_validate(document.value)
    except ValidationError as error:
        raise ProfileError(model_faults(error, document)) from None
    wiring = _wiring(model, document, frozenset(wires), descriptors)
    try:
        return Profile(model, hashlib.sha256(raw).hexdigest(), wiring)
    except CompileFaults as error:
        raise ProfileError(
            sorted(
                (Fault(file, document.line(one.place), one.message, one.hint) for one in error.faults),
                key=lambda fault: fault.line,
            )
        ) from None


def _wiring(
    model: ProfileModel, document: Document, wires: frozenset[Wire], given: bytes | Tell | None
) -> Wiring:
    """The wires, and the messages of the gRPC routes: as the profile names them, else as the store tells."""
    named = model.descriptors
    key = "file" if named is not None and named.file is not None else "module"
    try:
        if named is None:
            told = _told(model, given) if "grpc" in wires else None
            return Wiring(wires, Descriptors(told) if told is not None else None, told)
        if named.file is not None:
            data = (Path(document.file).parent / named.file).read_bytes()
        else:
            data = of_module(str(named.module))
        return Wiring(wires, Descriptors(data))
    except OSError as error:
        message, hint = f"the descriptor set cannot be read: {error.strerror}", "it lies beside the profile"
    except NoDescriptors as error:
        message = f"the descriptor set cannot be used: {error}"
        hint = "make it from the .proto files and lay it beside the profile: descriptors: {file: NAME.pb}"
    line = document.line(("descriptors", key) if named is not None else ())
    raise ProfileError([Fault(document.file, line, message, hint)])


def _told(model: ProfileModel, given: bytes | Tell | None) -> bytes | None:
    """The descriptor set of the services that the routes name, asked for only where there are any."""
    services = {route.grpc.method.split("/")[1] for route in model.routes
                if route.grpc is not None and (route.operation != "ignore" or route.when)}  # fmt: skip
    if not services or given is None or isinstance(given, bytes):
        return given if isinstance(given, bytes) else None
    return given(frozenset(services))


def model_faults(error: ValidationError, document: Document) -> list[Fault]:
    """What pydantic found, by line, each place once: of a union only the branch that went furthest."""
    deepest: dict[tuple[Any, ...], tuple[int, Fault]] = {}
    for found in error.errors(include_url=False, include_input=False):
        place = tuple(step for step in found["loc"] if _is_step(step))
        line = document.line(place)
        known = _known(place, document)
        message = f"{'.'.join(map(str, known)) or 'profile'}: {_said(found)}"
        if found["type"] == "extra_forbidden":
            message = f"the key {place[-1]!r} is not known in {'.'.join(map(str, place[:-1])) or 'a profile'}"
        fault = Fault(document.file, line, message, _hint(found))
        anchor = known[:3]
        before = deepest.get((*anchor, message))
        if before is None or before[0] < len(known):
            deepest[(*anchor, message)] = (len(known), fault)
    return [fault for _, fault in sorted(deepest.values(), key=lambda pair: (pair[1].line, -pair[0]))]


def _is_step(step: Any) -> bool:
    """Whether it is a step of the document; pydantic puts the names of a union's branches between."""
    if not isinstance(step, str):
        return True
    return not (step.endswith(("Model", "]")) or step in ("str", "int", "float", "bool", "none"))


def _known(place: tuple[Any, ...], document: Document) -> tuple[Any, ...]:
    known: tuple[Any, ...] = ()
    for step in place:
        if (*known, step) in document.lines:
            known = (*known, step)
    return known


def _said(found: Any) -> str:
    message = str(found["msg"])
    if found["type"] == "missing":
        return f"the key {found['loc'][-1]!r} is missing"
    return message.removeprefix("Value error, ")


def _hint(found: Any) -> str:
    if found["type"] == "extra_forbidden":
        return "look for a typing mistake; the keys are in policies/profile.schema.json"
    return ""
