"""checkov over what the chart renders, and a pod with a sidecar: each finding fixed, or explained here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from quietus.inject.pods import judge, patched
from tests.deploy.test_sidecar import WISHES, annotated, injector
from tests.deploy.tooling import CUSTOM, VALUES, objects, render, run, shape, tool

SUPPRESSED = {
    "CKV_K8S_11": "a CPU limit throttles a proxy, which is latency; requests are set, and memory is limited",
    "CKV_K8S_43": "the digest is the user's: image.digest is a value, and a test renders it",
    "CKV_K8S_15": "with a digest IfNotPresent is enough; Always would stop pods while a registry is away",
    "CKV_K8S_8": "test pods run once and end",
    "CKV_K8S_9": "test pods run once; a sidecar beside an agent has none: a shut gate must not stop it",
    "CKV2_K8S_6": "test pods live for seconds and must not be let in anywhere: that is what they test",
    "CKV_K8S_155": "the injector keeps its own webhook's CA, and no other webhook: resourceNames says which",
    "CKV_K8S_35": "the ledger's URL comes from a Secret; passwords and keys are files",
}
"""Checks that are not followed, each with its reason."""
ONLY = {
    "CKV_K8S_8": ("-test-",),
    "CKV_K8S_9": ("-test-", "Pod.agents.agent"),
    "CKV2_K8S_6": ("-test-", "Pod.agents.agent"),
    "CKV_K8S_155": ("ClusterRole", "injector"),
    "CKV_K8S_35": ("gateway", "Pod.agents.agent"),
}
"""Where a check may fail, if not everywhere."""


def manifests(folder: Path) -> Path:
    seen: dict[str, Any] = {}
    for values in VALUES:
        found = [
            each for each in objects(render("helm4", values, "1.37")) if each["apiVersion"] not in CUSTOM
        ]
        texts = [json.dumps(shape(each), sort_keys=True) for each in found]
        if not set(texts) <= seen.keys():  # a policy counts for the pods of its own release
            seen |= dict.fromkeys(texts, True)
            name = f"case-{values.stem}"
            for each in found:
                if each["metadata"].get("namespace"):
                    each["metadata"]["namespace"] = name
            (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(found))
    asked = annotated(WISHES["server"])
    made = patched(asked, judge(asked, injector()).patch)
    made["spec"] = {**made["spec"], "containers": [made["spec"]["initContainers"][0]], "initContainers": [],
                    "automountServiceAccountToken": False}  # fmt: skip
    made["spec"]["containers"][0].pop("restartPolicy")
    made["metadata"]["namespace"] = "agents"
    (folder / "sidecar.yaml").write_text(yaml.safe_dump(made))
    return folder


@pytest.mark.timeout(280)
def test_no_check_fails_without_a_reason(tmp_path: Path) -> None:
    folder = manifests(tmp_path)
    python = tool("checkov") / "bin" / "python"
    quiet = ["--compact", "--quiet", "--skip-download", "--framework", "kubernetes", "-o", "json"]
    code, out, err = run(python, "-m", "checkov.main", "-d", folder, *quiet)
    assert code in (0, 1), err
    told = json.loads(out)
    report = (
        told if isinstance(told, dict) else next(each for each in told if each["check_type"] == "kubernetes")
    )
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 500
    failed = {(each["check_id"], each["resource"]) for each in report["results"]["failed_checks"]}
    for_no_reason = sorted(
        (check, resource)
        for check, resource in failed
        if check not in SUPPRESSED or (check in ONLY and not any(part in resource for part in ONLY[check]))
    )
    assert not for_no_reason
    assert SUPPRESSED.keys() <= {check for check, _ in failed}, "a reason that nothing needs any more"
