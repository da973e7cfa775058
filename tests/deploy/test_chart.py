"""The chart, rendered by real Helms, against the schemas of Kubernetes and of other operators."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from quietus.admin.reviews import GROUP, RESOURCE
from quietus.admin.tokens import Role
from tests.deploy.tooling import (
    CHART,
    CUSTOM,
    HELMS,
    ROOT,
    VALUES,
    VERSIONS,
    custom_faults,
    faults,
    key_of,
    objects,
    pods_of,
    render,
    restricted,
    run,
    shape,
    templated,
    tool,
)

GATEWAY_ON = ("injector.enabled=false", "gateway.enabled=true", "gateway.profile=chroma", "gateway.upstream=http://c:1",
           "gateway.keysSecret=k")  # fmt: skip


def deployment_of(values: Path | None, version: str, *settings: str) -> dict[str, Any]:
    found = objects(render("helm4", values, version, *settings))
    return next(each for each in found if each["kind"] == "Deployment")


@functools.cache
def everything(version: str) -> list[dict[str, Any]]:
    """Every object of every values file, once for each shape. Do not change them."""
    seen = {}
    for values in VALUES:
        for each in objects(render("helm4", values, version)):
            seen[json.dumps(shape(each), sort_keys=True)] = each
    return list(seen.values())


def test_templates_know_one_difference_between_versions_only() -> None:
    """So that two renderings are enough for nine versions."""
    texts = [path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file()]
    told = [line for text in texts for line in text.splitlines() if "semver" in line or "APIVersions" in line]
    assert told
    assert all('semverCompare ">=1.30.0-0"' in line for line in told)


@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem.removesuffix("-values"))
def test_lints_and_renders(helm: str, values: Path) -> None:
    code, out, err = run(tool(helm), "lint", "--strict", CHART, "-f", values)
    assert code == 0, out + err
    found = objects(render(helm, values, "1.29"))
    assert len({key_of(each) for each in found}) == len(found), "two objects have one name"


def test_both_helms_say_the_same() -> None:
    for values in VALUES:
        three, four = (objects(render(helm, values, "1.37")) for helm in HELMS)
        assert sorted(three, key=key_of) == sorted(four, key=key_of)


@pytest.mark.requirement("R200")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_kubernetes_accepts_it(version: str) -> None:
    rendered = "1.29" if version == "1.29" else "1.37"
    found = [each for each in everything(rendered) if each["apiVersion"] not in CUSTOM]
    kinds = {each["kind"] for each in found}
    assert {"Deployment", "NetworkPolicy", "MutatingWebhookConfiguration", "HorizontalPodAutoscaler"} <= kinds
    assert ("ValidatingAdmissionPolicy" in kinds) == (version != "1.29"), "it is stable from 1.30 on"
    assert len(found) > 40
    assert not [fault for each in found for fault in faults(each, version)]


def test_schemas_are_really_looked_at() -> None:
    deployment = next(each for each in everything("1.37") if each["kind"] == "Deployment")
    broken = json.loads(json.dumps(deployment))
    broken["spec"]["replicas"] = "one"
    assert faults(broken, "1.37")
    broken = json.loads(json.dumps(deployment))
    broken["spec"]["template"]["spec"]["containers"][0]["readOnly"] = True
    assert faults(broken, "1.37")


def test_operators_accept_it() -> None:
    found = [each for each in everything("1.37") if each["apiVersion"] in CUSTOM]
    assert {"PodMonitor", "ServiceMonitor", "PrometheusRule", "Certificate", "Issuer"} <= {
        e["kind"] for e in found
    }
    assert custom_faults(found) == ""
    rule = json.loads(json.dumps(next(each for each in found if each["kind"] == "PrometheusRule")))
    rule["spec"]["groups"][0]["rules"][0].pop("expr")
    assert "expr" in custom_faults([rule]), "it would not have been seen"


def test_every_pod_passes_pod_security_restricted() -> None:
    pods = list(pods_of(everything("1.37")))
    assert len(pods) > 10
    assert not [f"{name}: {fault}" for name, pod in pods for fault in restricted(pod)]


def projected(volume: dict[str, Any]) -> list[dict[str, Any]]:
    return list(volume.get("projected", {}).get("sources", ()))


def test_no_token_but_the_injectors() -> None:
    for values in VALUES:
        for name, pod in pods_of(objects(render("helm4", values, "1.37"))):
            assert pod["spec"]["automountServiceAccountToken"] is False, name
            sources = [s for v in pod["spec"].get("volumes") or () for s in projected(v)]
            tokens = [source for source in sources if "serviceAccountToken" in source]
            assert not tokens or "injector" in name or values.stem == "gateway-reviews-values", name


@pytest.mark.requirement("R200")
def test_reviews_give_one_container_a_token_and_its_account_two_questions() -> None:
    values = CHART / "ci" / "gateway-reviews-values.yaml"
    found = objects(render("helm4", values, "1.37", "gateway.extraContainers[0].name=other"))
    [pod] = [pod for name, pod in pods_of(found) if name == "Deployment/t-quietus-gateway"]
    mounted = {
        each["name"]: {mount["name"] for mount in each.get("volumeMounts", ())}
        for each in pod["spec"]["containers"]
    }
    assert "api" in mounted["quietus"] and "api" not in mounted["other"]
    bindings = [each for each in found if each["kind"] == "ClusterRoleBinding"]
    assert [each["roleRef"]["name"] for each in bindings] == ["system:auth-delegator"]
    assert [s["name"] for s in bindings[0]["subjects"]] == [pod["spec"]["serviceAccountName"]]
    rules = [(r["apiGroups"], r["resources"], r["verbs"]) for e in found if e["kind"] == "ClusterRole"
             for r in e["rules"]]  # fmt: skip
    assert rules == [([GROUP], [RESOURCE], [role.name.lower()]) for role in Role]
    config = next(e for e in found if key_of(e) == ("ConfigMap", "t-quietus-gateway"))["data"]["quietus.yaml"]
    admin = yaml.safe_load(config)["admin"]
    assert admin["reviews"] == {"audiences": ["quietus", "erasure"], "cache": "5s"}
    assert "token_file" not in admin


def test_nothing_of_reviews_unless_they_are_wanted() -> None:
    for settings in ((), ("gateway.reviews.enabled=false",)):
        found = objects(render("helm4", None, "1.37", *GATEWAY_ON, *settings))
        assert not [each for each in found if each["kind"].startswith("ClusterRole")]


def test_probes_have_three_meanings_and_a_port_of_their_own() -> None:
    deployment = deployment_of(None, "1.37", *GATEWAY_ON)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    asked = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: get["path"] for name, get in asked.items()} == {
        "startup": "/startupz", "liveness": "/healthz", "readiness": "/readyz"}  # fmt: skip
    assert {get["port"] for get in asked.values()} == {"quietus-probes"}


def test_grace_covers_the_drain() -> None:
    deployment = deployment_of(None, "1.37", *GATEWAY_ON)
    spec = deployment["spec"]["template"]["spec"]
    pause = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert spec["terminationGracePeriodSeconds"] > 20 + pause
    older = deployment_of(None, "1.29", *GATEWAY_ON)
    assert "exec" in older["spec"]["template"]["spec"]["containers"][0]["lifecycle"]["preStop"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (("gateway.replicas=2",), "serves one replica"),
        (("gateway.autoscaling.enabled=true",), "serves one replica"),
        (("gateway.persistence.size=",), "needs a volume"),
        (("gateway.keysSecret=",), "gateway.keysSecret"),
        (("gateway.profile=",), "gateway.profile"),
        (("gateway.upstream=",), "gateway.upstream"),
        (("gateway.ledger.kind=memory", "gateway.policy=default"), "forgets with the pod"),
        (("gateway.ledger.kind=memory", "gateway.replicas=2"), "forgets with the pod"),
        (("gateway.ledger.kind=secret",), "gateway.ledger.secretName"),
        (("injector.enabled=true", "injector.certificates.mode=secret"), "secretName"),
        (("gateway.replicas=many",), "replicas"),
        (("gateway.polcy=default",), "polcy"),
        (("image.digest=sha256:1",), "digest"),
        (("sidecar.upstream=ftp://x",), "upstream"),
        (("sidecar.ledger=somewhere",), "ledger"),
        (("networkPolicy.stores[0].name=x",), "podSelector"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("helm", HELMS)
def test_what_would_not_be_safe_is_refused(helm: str, settings: tuple[str, ...], says: str) -> None:
    code, _, err = templated(helm, None, "1.37", *GATEWAY_ON, *settings)
    assert code != 0
    assert says in err


def test_observe_is_the_default_and_enforcement_one_value() -> None:
    def policies(*settings: str) -> list[str]:
        found = objects(render("helm4", None, "1.37", *GATEWAY_ON, *settings))
        config = next(e for e in found if key_of(e) == ("ConfigMap", "t-quietus-gateway"))
        return [yaml.safe_load(config["data"]["quietus.yaml"])["policy"]]

    assert policies() == ["observe"]
    assert policies("gateway.policy=default") == ["default"]
    injector = next(e for e in objects(render("helm4", None, "1.37")) if e["kind"] == "ConfigMap")
    assert yaml.safe_load(injector["data"]["injector.yaml"])["sidecar"]["policy"] == "observe"


def test_the_gateways_configuration_is_one_that_the_product_takes(tmp_path: Path) -> None:
    from quietus.config import load

    taken = 0
    for values in VALUES:
        for each in objects(render("helm4", values, "1.37")):
            text = (each.get("data") or {}).get("quietus.yaml") if each["kind"] == "ConfigMap" else None
            if text is not None:
                file = tmp_path / "quietus.yaml"
                file.write_text(text)
                settings = load(file, None, {"QUIETUS_LEDGER__URL": "memory:"})
                assert settings.health.listen and settings.metrics.listen, values
                assert settings.admin.listen.startswith("127.0.0.1:"), values
                taken += 1
    assert taken >= 8


def test_keys_never_lie_beside_the_ledger() -> None:
    for values in VALUES:
        for name, pod in pods_of(objects(render("helm4", values, "1.37"))):
            for each in pod["spec"]["containers"]:
                mounts = {m["name"]: m["mountPath"] for m in each.get("volumeMounts") or ()}
                if "ledger" in mounts:
                    assert "keys" in mounts, name
                    assert not mounts["keys"].startswith(mounts["ledger"]), name


def test_documents_that_reload_roll_nothing_and_configuration_does() -> None:
    """A ConfigMap of policies is taken over by a running gateway; what is read once at the start is not."""

    def checksum(*settings: str) -> str:
        deployment = deployment_of(CHART / "ci" / "gateway-own-documents-values.yaml", "1.37", *settings)
        for volume in deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]:
            assert "subPath" not in volume, "a subPath never changes"
        return str(deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"])

    assert checksum() == checksum("policies.house.mode=observe")
    assert checksum() != checksum("gateway.config.timeouts.upstream=31s")


def test_the_schema_and_the_values_name_the_same_keys() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(below: Any, model: Any, at: str) -> None:
        if not isinstance(below, dict) or "properties" not in model:
            return
        open_ended = at.endswith((".resources", ".namespaceSelector", ".issuerRef"))
        assert open_ended or set(below) == set(model["properties"]) - {"global"}, at
        for key, value in below.items():
            compare(value, model["properties"].get(key, {}), f"{at}.{key}".lstrip("."))

    compare(values, schema, "")


def test_readme_is_made_from_the_values() -> None:
    from scripts.chart import readme

    assert (CHART / "README.md").read_text() == readme(), "run: make chart"
    assert (ROOT / "helm" / "quietus" / "values.schema.json").exists()
