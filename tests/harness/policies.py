"""Policies that let calls wait where the default one refuses them: as models, and as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from quietus.core.policy import Policy
from quietus.policies import load_policy

RESTATED: Final = {"operation": "write", "write": "restated_content"}
INSIDE: Final = {"operation": ["recall", "read"], "erasure": "inside", "state": "unsettled"}
_REPLACED: Final = ("write-restating-erased", "recall-in-erased-scope")


def changed(*rules: dict[str, Any]) -> Policy:
    """The default policy with rules in place of its own on recalls inside and on restating."""
    default = load_policy("default")
    first = [dict(rule, name=f"mine-{place}") for place, rule in enumerate(rules)]
    document = default.model_dump(mode="json", exclude_unset=True, by_alias=True)
    kept = [rule for rule in document["rules"] if rule["name"] not in _REPLACED]
    return Policy.model_validate(document | {"rules": [*first, *kept]})


_RECALLS: Final = {"when": INSIDE, "effect": "wait"}
_WRITES: Final = (
    {"when": RESTATED | {"state": "unsettled"}, "effect": "delay"}, {"when": RESTATED, "effect": "allow"},
)  # fmt: skip
RECALLS_WAIT: Final = changed(_RECALLS)
WRITES_WAIT: Final = changed(*_WRITES)
BOTH_WAIT: Final = changed(_RECALLS, *_WRITES)


def written(policy: Policy, folder: Path) -> str:
    """The path of a file that holds it: JSON is YAML, too."""
    path = folder / "waiting.yaml"
    path.write_text(json.dumps(policy.model_dump(mode="json", exclude_unset=True, by_alias=True)))
    return str(path)
