"""What becomes of a pod."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from quietus.inject.container import container
from quietus.inject.pods import judge, patched
from quietus.inject.wishes import KEYS, InjectionRefused, InjectorSettings, SidecarWish, wish_of
from tests.inject.making import SETTINGS, WISH, pod

OBSERVE = {"quietus.io/profile": "chroma", "quietus.io/upstream": "http://chroma:8000"}


def injected(found: dict[str, Any], settings: InjectorSettings = SETTINGS) -> dict[str, Any]:
    given = judge(found, settings)
    assert given.outcome == "injected"
    return patched(found, given.patch)


def environment(found: dict[str, Any], place: str = "initContainers") -> dict[str, str]:
    sidecar = next(each for each in found["spec"][place] if each["name"] == "quietus")
    return {each["name"]: each.get("value", "") for each in sidecar["env"]}


@pytest.mark.requirement("R200")
def test_a_labelled_pod_gets_a_native_sidecar_before_everything_else() -> None:
    made = injected(pod(initContainers=[{"name": "migrate", "image": "agent"}]))
    first = made["spec"]["initContainers"][0]
    assert (first["name"], first["restartPolicy"]) == ("quietus", "Always")
    assert first["startupProbe"]["httpGet"]["path"] == "/startupz", "the agent waits for a loaded policy"
    assert [each["name"] for each in made["spec"]["initContainers"]] == ["quietus", "migrate"]
    assert made["spec"]["containers"] == [{"name": "agent", "image": "agent"}]
    assert made["metadata"]["labels"]["quietus.io/injected"] == "true"
    assert made["metadata"]["annotations"]["quietus.io/status"] == "injected"


def test_beside_an_agent_it_listens_on_the_loopback_and_beside_the_store_on_the_pod() -> None:
    agent, store = injected(pod()), injected(pod(WISH | {"quietus.io/upstream": "http://localhost:8000"}))
    assert environment(agent)["QUIETUS_STORE__HTTP__LISTEN"] == "127.0.0.1:8700"
    assert environment(store)["QUIETUS_STORE__HTTP__LISTEN"] == "0.0.0.0:8700"
    assert "readinessProbe" not in agent["spec"]["initContainers"][0], "a shut gate must not stop the agent"
    assert "readinessProbe" in store["spec"]["initContainers"][0]
    forced = injected(pod(WISH | {"quietus.io/listen": "pod"}))
    assert environment(forced)["QUIETUS_STORE__HTTP__LISTEN"] == "0.0.0.0:8700"
    for made in (agent, store):
        assert environment(made)["QUIETUS_ADMIN__LISTEN"].startswith("127.0.0.1:")


def test_its_environment_is_one_that_the_product_takes() -> None:
    from quietus.config import load, traces_protocol

    watching = {"quietus.io/bypass-every": "15m", "quietus.io/otlp-endpoint": "http://collector:4318"}
    kept = {"quietus.io/ledger": "secret/url", "quietus.io/credentials-secret": "c"}
    for wish in (WISH, OBSERVE, WISH | watching, WISH | kept):
        given = environment(injected(pod(wish)))
        settings = load(
            None, None, {**given, "QUIETUS_LEDGER__URL": given["QUIETUS_LEDGER__URL"] or "memory:"}
        )
        assert settings.store.profile == "chroma"
        assert settings.timeouts.drain == 10
        wanted = watching.items() <= wish.items()
        assert settings.bypass.every == (900 if wanted else None)
        assert traces_protocol(given) == ("http/protobuf" if wanted else None)


def test_keys_come_from_a_secret_and_never_lie_beside_the_ledger() -> None:
    made = injected(pod())
    mounts = {each["name"]: each["mountPath"] for each in made["spec"]["initContainers"][0]["volumeMounts"]}
    assert mounts["quietus-keys"] == "/var/run/quietus/keys"
    assert mounts["quietus-ledger"] == "/var/lib/quietus"
    assert made["spec"]["securityContext"]["fsGroup"] == 65532, "or it could not read them"
    kept = injected(pod(securityContext={"fsGroup": 7}))
    assert kept["spec"]["securityContext"] == {"fsGroup": 7}


def test_nothing_is_asked_of_the_pod_where_nothing_is_kept() -> None:
    made = injected(pod(OBSERVE))
    assert "securityContext" not in made["spec"]
    assert environment(made)["QUIETUS_LEDGER__URL"] == "memory:"
    assert [each["name"] for each in made["spec"]["volumes"]] == ["quietus-tmp"]


def test_a_plain_container_where_the_cluster_is_old() -> None:
    made = injected(pod(WISH | {"quietus.io/native": "false"}))
    assert "initContainers" not in made["spec"]
    assert [each["name"] for each in made["spec"]["containers"]] == ["quietus", "agent"]
    assert "restartPolicy" not in made["spec"]["containers"][0]


def test_documents_come_from_config_maps_as_folders_so_that_they_reload() -> None:
    made = injected(pod(WISH | {"quietus.io/profile": "configmap/house/p.yaml"}))
    assert environment(made)["QUIETUS_STORE__PROFILE"] == "/etc/quietus/profile/p.yaml"
    mounts = made["spec"]["initContainers"][0]["volumeMounts"]
    assert {"name": "quietus-profile", "mountPath": "/etc/quietus/profile", "readOnly": True} in mounts
    assert not any("subPath" in each for each in mounts)


def test_twice_is_as_once() -> None:
    made = injected(pod())
    again = judge(made, SETTINGS)
    assert (again.outcome, again.patch) == ("already", ())


def test_what_a_later_webhook_added_is_no_forgery() -> None:
    made = injected(pod())
    sidecar = made["spec"]["initContainers"][0]
    sidecar["env"].append({"name": "HTTP_PROXY", "value": "x"})
    sidecar["volumeMounts"].append({"name": "token", "mountPath": "/var/run/secrets/token"})
    sidecar["livenessProbe"]["httpGet"] = {"path": "/mesh", "port": 15020}
    assert judge(made, SETTINGS).outcome == "already"


FORGERIES = {
    "no sidecar": lambda spec: spec.pop("initContainers"),
    "another image": lambda spec: spec["initContainers"][0].update(image="evil"),
    "a command": lambda spec: spec["initContainers"][0].update(command=["sleep"]),
    "arguments": lambda spec: spec["initContainers"][0].update(args=["--help"]),
    "no restart": lambda spec: spec["initContainers"][0].pop("restartPolicy"),
    "root": lambda spec: spec["initContainers"][0]["securityContext"].update(runAsUser=0),
    "another policy": lambda spec: spec["initContainers"][0]["env"][4].update(value="observe"),
    "two policies": lambda spec: spec["initContainers"][0]["env"].append(
        {"name": "QUIETUS_POLICY", "value": "observe"}
    ),
    "another place": lambda spec: spec["containers"].append(spec["initContainers"].pop()),
    "twice": lambda spec: spec["containers"].append(spec["initContainers"][0]),
    "another ledger": lambda spec: spec["initContainers"][0]["volumeMounts"].append(
        {"name": "x", "mountPath": "/var/lib/quietus"}
    ),
    "preloaded": lambda spec: spec["initContainers"][0]["env"].append({"name": "LD_PRELOAD", "value": "x"}),
}


@pytest.mark.requirement("R200")
@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_status_is_refused(name: str) -> None:
    made = copy.deepcopy(injected(pod()))
    FORGERIES[name](made["spec"])
    with pytest.raises(InjectionRefused, match="quietus.io/status"):
        judge(made, SETTINGS)


def test_without_the_label_nothing_happens_but_a_forgery_is_seen() -> None:
    assert judge(pod(labelled=False), SETTINGS).outcome == "unlabelled"
    with pytest.raises(InjectionRefused, match="remove it"):
        judge(pod({"quietus.io/status": "injected"}, labelled=False), SETTINGS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hostNetwork": True}, "hostNetwork"),
        ({"os": {"name": "windows"}}, "Linux"),
        ({"containers": [{"name": "quietus", "image": "x"}]}, "rename"),
        ({"containers": [{"name": "a", "ports": [{"containerPort": 8711}]}]}, "8711"),
        ({"volumes": [{"name": "quietus-keys", "emptyDir": {}}]}, "rename"),
        ({"containers": []}, "no containers"),
        ({"containers": "x"}, "no list"),
    ],
)
def test_pods_that_cannot_have_one_are_told_why(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InjectionRefused, match=says):
        judge(pod(**change), SETTINGS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"quietus.io/ledger": "memory"}, "forgets with the pod"),
        ({"quietus.io/keys-secret": ""}, "keys-secret"),
        ({"quietus.io/profile": ""}, "quietus.io/profile"),
        ({"quietus.io/upstream": ""}, "quietus.io/upstream"),
        ({"quietus.io/upstream": "http://a:b@c"}, "credentials"),
        ({"quietus.io/upstream": "http://127.0.0.1:8700"}, "same port"),
        ({"quietus.io/ledger": "volume/data"}, "no volume called data"),
        ({"quietus.io/ledger": "../etc"}, "ledger"),
        ({"quietus.io/port": "0"}, "quietus.io/port"),
        ({"quietus.io/port": "8711"}, "same"),
        ({"quietus.io/cpu-request": "lots"}, "quantity"),
        ({"quietus.io/polcy": "strict"}, "known are"),
        ({"quietus.io/store": "mine"}, "locked"),
        ({"quietus.io/native": "perhaps"}, "quietus.io/native"),
        ({"quietus.io/bypass-every": "often"}, "quietus.io/bypass-every"),
        ({"quietus.io/otlp-endpoint": "collector:4318"}, "collector"),
        ({"quietus.io/otlp-endpoint": "http://u:p@c:4318"}, "collector"),
    ],
)
def test_annotations_that_cannot_be_are_told_what_to_write(change: dict[str, str], says: str) -> None:
    with pytest.raises(InjectionRefused, match=says):
        judge(pod(WISH | change), SETTINGS)


def test_a_job_beside_a_plain_sidecar_would_never_end() -> None:
    with pytest.raises(InjectionRefused, match="native"):
        judge(pod(WISH | {"quietus.io/native": "false"}, restartPolicy="Never"), SETTINGS)


def test_what_is_allowed_but_doubtful_is_said() -> None:
    told = judge(pod(OBSERVE, shareProcessNamespace=True, terminationGracePeriodSeconds=5), SETTINGS).warnings
    assert len(told) == 3
    assert any("observes" in each for each in told)
    assert all(len(each) <= 256 for each in told), "longer ones are cut by the API server"


def test_every_setting_but_resources_has_an_annotation() -> None:
    assert set(KEYS.values()) == set(SidecarWish.model_fields) - {"resources"}
    wish = wish_of(SETTINGS, WISH | {"quietus.io/memory-limit": "1Gi"})
    assert container(SETTINGS, wish)["resources"]["limits"] == {"memory": "1Gi"}
