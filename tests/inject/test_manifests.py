"""`quietus inject` without a cluster."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml
from typer.testing import CliRunner

from quietus.cli import app
from quietus.inject.manifests import PLACES, injected
from quietus.inject.wishes import InjectionRefused, InjectorSettings
from quietus.keys import Keyring
from tests.inject.making import SETTINGS, WISH, pod


@pytest.fixture(autouse=True)
def log_of_its_own() -> Iterator[None]:
    """The command sets up the log on a stream that ends with the test."""
    yield
    structlog.reset_defaults()


def holding(kind: str, found: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """An object of that kind with the pod in it."""
    node: dict[str, Any] = {"metadata": found["metadata"], "spec": found["spec"]}
    for part in reversed(PLACES[kind]):
        node = {part: node}
    made = {"kind": kind, "metadata": {"name": "x"}, **node}
    made["spec"] = {**made["spec"], **spec}
    return made


@pytest.mark.parametrize("kind", PLACES)
def test_every_kind_that_makes_pods(kind: str) -> None:
    text, _ = injected(yaml.safe_dump(holding(kind, pod())), SETTINGS)
    node = yaml.safe_load(text)
    for part in PLACES[kind]:
        node = node[part]
    assert node["spec"]["initContainers"][0]["name"] == "quietus"
    assert node["metadata"]["annotations"]["quietus.io/status"] == "injected"
    again, _ = injected(text, SETTINGS)
    assert again == text, "twice is as once"


def test_everything_else_stays_as_it_is() -> None:
    documents = [
        {"kind": "Service", "metadata": {"name": "a"}},
        {"kind": "List", "items": [pod(), {"kind": "Secret"}]},
    ]
    text, _ = injected(yaml.safe_dump_all([*documents, None]), SETTINGS)
    service, many = yaml.safe_load_all(text)
    assert service == documents[0]
    assert many["items"][0]["spec"]["initContainers"]
    assert many["items"][1] == {"kind": "Secret"}


def test_two_replicas_do_not_share_a_ledger_on_one_claim() -> None:
    with pytest.raises(InjectionRefused, match="Deployment/x: .*replicas"):
        injected(yaml.safe_dump(holding("Deployment", pod(), replicas=2)), SETTINGS)
    own = WISH | {"quietus.io/ledger": "volume/data"}
    spec = {"volumes": [{"name": "data", "emptyDir": {}}]}
    injected(yaml.safe_dump(holding("StatefulSet", pod(own, **spec), replicas=2)), SETTINGS)
    shared = WISH | {"quietus.io/ledger": "secret/url"}
    injected(yaml.safe_dump(holding("Deployment", pod(shared), replicas=2)), SETTINGS)


@pytest.mark.parametrize("text", ["a: [", "kind: Deployment", "kind: Pod\nspec: 7", "kind: Pod\nspec: {}"])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(InjectionRefused):
        injected(text, InjectorSettings())


def run(*arguments: str, text: str | None = None) -> Any:
    return CliRunner().invoke(app, ["inject", *arguments], input=text)


def test_reads_stdin_and_says_what_to_change(tmp_path: Path) -> None:
    told = run("-f", "-", text=yaml.safe_dump(pod()))
    assert told.exit_code == 0
    assert "name: quietus" in told.stdout
    refused = run("-f", "-", text=yaml.safe_dump(pod(hostNetwork=True)))
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "hostNetwork" in refused.stderr
    assert run("-f", str(tmp_path / "none.yaml")).exit_code == 2
    assert run().exit_code == 2


@pytest.mark.parametrize("text", ["sidecar: {polcy: x}", "sidecar: [", "sidecar: {ledger: x}", "7"])
def test_settings_of_the_injector_are_checked(tmp_path: Path, text: str) -> None:
    config = tmp_path / "injector.yaml"
    config.write_text(text)
    told = run("-f", "-", "--config", str(config), text="kind: Pod")
    assert told.exit_code == 2
    assert "injector.yaml" in told.stderr


@pytest.mark.parametrize(
    "arguments",
    [(), ("--cert", "c"), ("--secret", "a/b"), ("--secret", "a", "--webhook", "w", "--service", "s"),
     ("--cert", "/none/c", "--key", "/none/k"), ("--secret", "a/b", "--webhook", "w", "--service", "s"),
     ("--cert", "c", "--key", "k", "--listen", "x")],
    ids=range(7),
)  # fmt: skip
def test_serve_says_what_is_missing(arguments: tuple[str, ...]) -> None:
    told = run("serve", "--probes", "127.0.0.1:0", "--listen", "127.0.0.1:0", *arguments)
    assert told.exit_code == 2
    assert told.stderr


def test_a_secret_holds_keys_that_load_and_a_token(tmp_path: Path) -> None:
    told = run("secret", "quietus-keys", "-n", "agents")
    assert told.exit_code == 0
    made = json.loads(told.stdout)
    assert made["metadata"] == {"name": "quietus-keys", "namespace": "agents"}
    assert made["immutable"] is True
    data = {key: base64.b64decode(value) for key, value in made["data"].items()}
    file = tmp_path / "keys.json"
    file.write_bytes(data["keys.json"])
    file.chmod(0o600)
    assert Keyring.load_or_make(file, ledger_is_new=False).ids
    assert len(data["admin.token"]) >= 32
    assert run("secret", "quietus-keys").stdout != told.stdout
