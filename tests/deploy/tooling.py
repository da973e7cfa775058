"""The real tools, as `scripts/deploy_tools.py` has fetched them."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "quietus"
TOOLS = Path(sys.prefix) / "tools"
HELMS = ("helm3", "helm4")
VERSIONS = tuple(f"1.{minor}" for minor in range(29, 38))
"""Of Kubernetes."""
VALUES = tuple(sorted(CHART.glob("ci/*-values.yaml")))
WORDS = {"kind", "apiVersion", "type", "operator", "protocol", "action", "operations", "scope", "effect"}
CUSTOM = ("monitoring.coreos.com/v1", "cert-manager.io/v1")


def tool(name: str) -> Path:
    """The path of a tool; skips, with the reason, where this machine cannot have it."""
    path = TOOLS / name
    if not path.exists():
        missing = (
            json.loads((TOOLS / "missing.json").read_text()) if (TOOLS / "missing.json").exists() else {}
        )
        if name in missing:
            pytest.skip(f"{name}: {missing[name]}")
        raise AssertionError(f"{name} is not in {TOOLS}: run the tests with `make test-deploy`")
    return path


def run(*command: str | Path, stdin: str | None = None, folder: Path | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    done = subprocess.run(
        [str(part) for part in command], input=stdin, capture_output=True, text=True, cwd=folder, timeout=300
    )
    return done.returncode, done.stdout, done.stderr


@functools.cache
def render(helm: str, values: Path | None, version: str, *settings: str) -> str:
    """What `helm template` prints. `settings` are `key=value`."""
    code, out, err = templated(helm, values, version, *settings)
    assert code == 0, err
    return out


def templated(helm: str, values: Path | None, version: str, *settings: str) -> tuple[int, str, str]:
    command: list[str | Path] = [
        tool(helm),
        "template",
        "t",
        CHART,
        "-n",
        "quietus",
        "--kube-version",
        f"{version}.0",
    ]
    if values is not None:
        command += ["-f", values]
    for setting in settings:
        command += ["--set", setting]
    return run(*command)


def objects(text: str) -> list[dict[str, Any]]:
    """The objects of a stream of YAML."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [each for each in yaml.load_all(text, loader) if each is not None]


def shape(value: Any) -> Any:
    """A value with every scalar replaced by the name of its type: equal for what a schema cannot tell apart.

    Names and enumerations are kept, since a schema can.
    """
    if isinstance(value, dict):
        return {key: child if key in WORDS else shape(child) for key, child in value.items()}
    if isinstance(value, list):
        return [shape(child) for child in value]
    return type(value).__name__


def key_of(each: dict[str, Any]) -> tuple[str, str]:
    return each["kind"], each["metadata"]["name"]


def pods_of(found: Iterable[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every pod, or template of pods, with the name of what holds it."""
    for each in found:
        name = "/".join(key_of(each))
        if each["kind"] == "Pod":
            yield name, each
        elif "template" in (each.get("spec") or {}):
            yield name, each["spec"]["template"]


def faults(each: dict[str, Any], version: str) -> list[str]:
    """What Kubernetes of that version would not accept about an object, unknown keys included."""
    import kubernetes_validate

    try:
        kubernetes_validate.validate(each, version, strict=True)
    except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
        return [f"{key_of(each)} in {version}: {getattr(error, 'message', error)}"]
    return []


def custom_faults(found: list[dict[str, Any]]) -> str:
    """What the operators' schemas say against their custom resources."""
    code, out, err = run(tool("node"), "validate.mjs", stdin=json.dumps(found), folder=TOOLS / "models")
    assert code in (0, 1) and (code == 0) == (not out), err
    return out


def restricted(pod: dict[str, Any]) -> list[str]:
    """What Pod Security "restricted" would refuse about a pod, and what we ask for besides."""
    spec = pod["spec"]
    above = spec.get("securityContext") or {}
    told = [f"uses {key}" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    for volume in spec.get("volumes") or ():
        kind = next(key for key in volume if key != "name")
        if kind not in ("configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"):
            told.append(f"volume {volume['name']} is a {kind}")
    for each in (*(spec.get("initContainers") or ()), *spec["containers"]):
        own = each.get("securityContext") or {}
        seccomp = (own.get("seccompProfile") or above.get("seccompProfile") or {}).get("type")
        wanted = {
            "may gain privileges": own.get("allowPrivilegeEscalation") is False,
            "keeps capabilities": own.get("capabilities") == {"drop": ["ALL"]},
            "may be root": own.get("runAsNonRoot", above.get("runAsNonRoot")) is True,
            "has no user of its own": own.get("runAsUser", above.get("runAsUser")) == 65532,
            "writes to its root": own.get("readOnlyRootFilesystem") is True,
            "is not confined": seccomp == "RuntimeDefault",
            "uses ports of the host": not any("hostPort" in port for port in each.get("ports") or ()),
            "asks for nothing": bool((each.get("resources") or {}).get("requests")),
            "has no bound on memory": "memory" in (each["resources"].get("limits") or {}),
        }
        told += [f"{each['name']} {what}" for what, holds in wanted.items() if not holds]
    return told
