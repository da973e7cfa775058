"""One sidecar, three ways: by the webhook, by `quietus inject`, and by the chart's templates."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from quietus.inject.pods import judge, patched
from quietus.inject.wishes import KEYS, InjectorSettings
from tests.deploy.tooling import CHART, VERSIONS, faults, objects, render, restricted, run, tool
from tests.inject.making import pod

AGENT: dict[str, Any] = {"profile": "chroma", "upstream": "http://chroma:8000"}
KEPT = AGENT | {"policy": "default", "keysSecret": "keys"}
WISHES: dict[str, dict[str, Any]] = {
    "observing": AGENT,
    "beside the store": AGENT | {"upstream": "http://127.0.0.1:8000"},
    "claim": KEPT | {"ledger": "claim/ledger"},
    "volume": KEPT | {"ledger": "volume/data"},
    "server": KEPT | {"ledger": "secret/url", "ledgerPasswordSecret": "password"},
    "credentials": KEPT | {"ledger": "claim/ledger", "credentialsSecret": "token"},
    "gRPC": KEPT | {"ledger": "claim/ledger", "upstream": "", "grpcUpstream": "milvus:19530",
                    "credentialsSecret": "token"},
    "both wires": AGENT | {"grpcUpstream": "127.0.0.1:19530", "upstream": "http://localhost:9091"},
    "documents": KEPT | {"profile": "configmap/house/p.yaml", "policy": "configmap/house/q.yaml",
                         "ledger": "claim/ledger"},
    "plain": AGENT | {"native": False, "port": 9000, "drainSeconds": 20, "listen": "pod", "store": "other"},
    "watching": AGENT | {"bypassEvery": "15m", "otlpEndpoint": "http://collector:4318"},
}  # fmt: skip

CONSUMER = """\
apiVersion: v1
kind: Pod
metadata:
  name: agent
  labels:
    app: agent
    quietus.io/inject: enabled
    {{- include "quietus.sidecar.labels" .Subcharts.quietus | nindent 4 }}
  annotations:
    {{- include "quietus.sidecar.annotations" .Subcharts.quietus | nindent 4 }}
spec:
  securityContext: {{- include "quietus.sidecar.podSecurity" .Subcharts.quietus | nindent 4 }}
  initContainers: {{- include "quietus.sidecar.initContainers" .Subcharts.quietus | nindent 4 }}
  containers:
    {{- include "quietus.sidecar.containers" .Subcharts.quietus | nindent 4 }}
    - {name: agent, image: agent}
  volumes:
    {{- include "quietus.sidecar.volumes" .Subcharts.quietus | nindent 4 }}
    - {name: data, emptyDir: {}}
"""


def injector() -> InjectorSettings:
    """The settings as the chart hands them to the injector."""
    found = next(e for e in objects(render("helm4", None, "1.37")) if e["kind"] == "ConfigMap")
    return InjectorSettings.model_validate(yaml.safe_load(found["data"]["injector.yaml"]))


def annotated(wish: dict[str, Any]) -> dict[str, Any]:
    """A pod that asks for it by annotations."""
    names = {
        field.split("_")[0] + "".join(p.title() for p in field.split("_")[1:]): key
        for key, field in KEYS.items()
    }
    texts = {f"quietus.io/{names[key]}": json.dumps(value).strip('"') for key, value in wish.items()}
    return pod(texts, volumes=[{"name": "data", "emptyDir": {}}])


def sidecar_of(found: dict[str, Any]) -> dict[str, Any]:
    every = [*(found["spec"].get("initContainers") or ()), *found["spec"]["containers"]]
    return next(each for each in every if each["name"] == "quietus")


def unordered(found: dict[str, Any]) -> dict[str, Any]:
    made = {**sidecar_of(found)}
    for key in ("env", "volumeMounts"):
        made[key] = sorted(made[key], key=lambda each: str(each["name"]))
    return made


@pytest.fixture(scope="module")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody's own chart that depends on ours."""
    folder = tmp_path_factory.mktemp("consumer")
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: agent\nversion: 0.1.0\n")
    (folder / "templates").mkdir()
    (folder / "templates" / "pod.yaml").write_text(CONSUMER)
    shutil.copytree(CHART, folder / "charts" / "quietus")
    return folder


def templated_pod(consumer: Path, wish: dict[str, Any], helm: str = "helm4") -> dict[str, Any]:
    values = consumer / "own-values.yaml"
    off = {"enabled": False}
    quiet = {"injector": off, "admissionPolicy": off, "networkPolicy": off, "tests": off}
    values.write_text(yaml.safe_dump({"quietus": {**quiet, "sidecar": wish}}))
    code, out, err = run(tool(helm), "template", "a", consumer, "-f", values, "--kube-version", "1.33.0")
    assert code == 0, err
    found = objects(out)
    assert len(found) == 1, "the dependency made objects of its own"
    return found[0]


@pytest.mark.requirement("R200")
@pytest.mark.parametrize("name", WISHES)
def test_the_template_and_the_injector_make_the_same(consumer: Path, name: str) -> None:
    settings = injector()
    asked = annotated(WISHES[name])
    made = patched(asked, judge(asked, settings).patch)
    own = templated_pod(consumer, WISHES[name])
    assert unordered(own) == unordered(made)
    ours = [v for v in own["spec"]["volumes"] if v["name"].startswith("quietus-")]
    assert ours == [v for v in made["spec"]["volumes"] if v["name"].startswith("quietus-")]
    assert (own["spec"]["securityContext"] or {}) == made["spec"].get("securityContext", {})
    asked["spec"], asked["metadata"]["annotations"]["quietus.io/status"] = own["spec"], "injected"
    assert judge(asked, settings).outcome == "already", "the webhook takes it for its own"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", WISHES)
def test_an_injected_pod_is_one_that_kubernetes_takes(name: str) -> None:
    asked = annotated(WISHES[name])
    made = patched(asked, judge(asked, injector()).patch)
    wanted = (VERSIONS[0], VERSIONS[-1]) if name != "observing" else VERSIONS
    assert not [fault for version in wanted for fault in faults(made, version)]
    alone = {**made, "spec": {**made["spec"], "containers": [sidecar_of(made)], "initContainers": []}}
    assert not restricted(alone)


def test_the_injector_reads_what_the_chart_writes() -> None:
    settings = injector()
    assert settings.sidecar == InjectorSettings().sidecar, "the chart and the command have the same defaults"
    assert settings.image == "quietus:0.1.0.dev0"


@pytest.mark.parametrize(
    ("wish", "says"),
    [({}, "sidecar.profile"), ({"profile": "chroma"}, "sidecar.upstream"),
     (AGENT | {"policy": "default"}, "forgets with the pod"),
     (AGENT | {"ledger": "claim/x"}, "sidecar.keysSecret")],
    ids=range(4),
)  # fmt: skip
def test_the_template_refuses_what_would_not_be_safe(consumer: Path, wish: dict[str, Any], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        templated_pod(consumer, wish)


def test_a_dependency_renders_with_both_helms(consumer: Path) -> None:
    three, four = (templated_pod(consumer, WISHES["claim"], helm) for helm in ("helm3", "helm4"))
    assert three == four
