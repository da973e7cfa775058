"""Settings: one document, overridden by `QUIETUS_…` in the environment, overridden by flags.

This is the only module that reads the environment. Every fault says where the value came from (file and
line, or the variable, or the flag) and what to do. Secrets are never in a setting: settings name files.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from quietus.documents import Document, DocumentError, faults_of, parse, read
from quietus.profiles.faults import Fault
from quietus.settings import Settings as Settings

PREFIX: Final = "QUIETUS_"
_TOP: Final = frozenset(Settings.model_fields)


class ConfigError(DocumentError):
    """A configuration that is refused: usage, exit code 2."""


def load(
    file: Path | None = None,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """The settings. `flags` are dotted keys (`store.http.listen`); None among them means not given.

    Raises ConfigError.
    """
    try:
        document = read(file) if file is not None else Document("(defaults)", {}, {})
        value = document.value if document.value is not None else {}
        if not isinstance(value, dict):
            raise ConfigError([Fault(document.file, 1, "is not a mapping", "begin with `store:`")])
        sources: dict[tuple[str, ...], str] = {}
        merged: dict[str, Any] = _copied(value)
        for place, text, source in _overrides(os.environ if environ is None else environ):
            _put(merged, place, text, sources, source)
        for key, given in (flags or {}).items():
            if given is not None:
                place = tuple(key.split("."))
                _put(merged, place, given, sources, f"(flag for {key})")
        return _judged(Document(document.file, merged, document.lines), sources)
    except ConfigError:
        raise
    except DocumentError as error:
        raise ConfigError(error.faults) from None


def _judged(document: Document, sources: Mapping[tuple[str, ...], str]) -> Settings:
    try:
        return Settings.model_validate(document.value)
    except ValidationError as error:
        faults = faults_of(document, error, Settings, lambda place: _source_of(place, sources))
        raise ConfigError(faults) from None


def _source_of(place: tuple[str | int, ...], sources: Mapping[tuple[str, ...], str]) -> str:
    for length in range(len(place), 0, -1):
        known = sources.get(tuple(str(part) for part in place[:length]))
        if known:
            return known
    return ""


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(child) for key, child in value.items()}
    return [_copied(child) for child in value] if isinstance(value, list) else value


def _overrides(environ: Mapping[str, str]) -> list[tuple[tuple[str, ...], Any, str]]:
    """What the environment says. Names of ours are a top key, or hold `__`; others (such as those that
    Kubernetes makes for a Service named quietus) are left alone.
    """
    found = []
    for name in sorted(environ):
        if not name.startswith(PREFIX):
            continue
        place = tuple(part.lower() for part in name[len(PREFIX) :].split("__"))
        if place[0] in _TOP:
            found.append((place, _read(environ[name], name), name))
        elif len(place) > 1:
            near = difflib.get_close_matches(place[0], sorted(_TOP), 1)
            hint = f"did you mean {PREFIX}{near[0].upper()}__…?" if near else "unset it"
            raise ConfigError([Fault(name, 1, "is no setting", hint)])
    return found


def _read(text: str, name: str) -> Any:
    """A mapping or list is written as JSON; anything else is text, which the model reads."""
    if not text.lstrip().startswith(("{", "[")):
        return None if text.strip().lower() in ("", "null") else text
    try:
        json.loads(text)
    except ValueError:
        raise ConfigError([Fault(name, 1, "is not JSON", "write a plain value, or valid JSON")]) from None
    return parse(text, name).value


def _put(
    merged: dict[str, Any],
    place: tuple[str, ...],
    value: Any,
    sources: dict[tuple[str, ...], str],
    source: str,
) -> None:
    node = merged
    for part in place[:-1]:
        below = node.get(part)
        if isinstance(below, str) and part == "ledger":
            below = {"url": below}
        if not isinstance(below, dict):
            below = {}
        node[part] = below
        node = below
    node[place[-1]] = value
    sources[place] = source


def admin_access(
    file: Path | None,
    listen: str | None = None,
    token_file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[str, Path | None]:
    """Where a console finds the admin API, and the file of its token. Raises ConfigError."""
    flags: dict[str, Any] = {"admin.listen": listen, "admin.token_file": token_file}
    if file is None:
        # A console needs no store: what a store must be told is filled in.
        flags |= {"store.profile": "none", "store.http.upstream": "http://localhost"}
    settings = load(file, flags, environ)
    return settings.admin.listen, settings.token_path


def flag_name(text: str) -> str:
    """A dotted key as an environment variable: `store.http.listen` is `QUIETUS_STORE__HTTP__LISTEN`."""
    return PREFIX + re.sub(r"\.", "__", text).upper()


def cluster_address(environ: Mapping[str, str] | None = None) -> str:
    """Where a pod finds the API server of its cluster. Raises ConfigError outside of one."""
    found = os.environ if environ is None else environ
    host, port = found.get("KUBERNETES_SERVICE_HOST"), found.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        hint = "run in a pod; else give --cert and --key, or admin.reviews.server"
        raise ConfigError([Fault("KUBERNETES_SERVICE_HOST", 1, "is not set: this is no pod", hint)])
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def traces_protocol(environ: Mapping[str, str] | None = None) -> str | None:
    """How OpenTelemetry's own variables ask for traces to be sent; None: they ask for none.

    They do by an exporter `otlp`, or by an endpoint. The rest of them is read by OpenTelemetry's library.
    """
    found = os.environ if environ is None else environ
    exporters = {each.strip() for each in found.get("OTEL_TRACES_EXPORTER", "").split(",")} - {""}
    ends = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    wanted = "otlp" in exporters if exporters else any(found.get(name) for name in ends)
    if not wanted or found.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    return next((found[name] for name in names if found.get(name)), "http/protobuf")


def no_color(environ: Mapping[str, str] | None = None) -> bool:
    """Whether `NO_COLOR` asks for plain text (https://no-color.org)."""
    return bool((os.environ if environ is None else environ).get("NO_COLOR"))
