"""Loads policies: the shipped ones by name, a user's by path; faults come with file, line and hint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

from quietus.core.policy import UNSETTLED_WORD, Policy, When
from quietus.core.states import UNSETTLED
from quietus.documents import Document, DocumentError, read, validate
from quietus.profiles.faults import Fault

SHIPPED: Final = ("default", "strict", "observe")


class PolicyError(DocumentError):
    """A policy that is refused at load, with everything that is wrong with it."""


def folder() -> Path:
    """The folder of what ships: inside the installed package, or beside it in a checkout."""
    installed = Path(str(resources.files("quietus"))) / "_policies"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2] / "policies"


def policy_path(name: str) -> Path:
    """The file that a `policy` setting means."""
    return folder() / "rules" / f"{name}.yaml" if name in SHIPPED else Path(name)


def load_policy(name: str | Path) -> Policy:
    """The policy of that name or path. Raises PolicyError."""
    try:
        return judged(read(policy_path(str(name)) if isinstance(name, str) else name))
    except PolicyError:
        raise
    except DocumentError as error:
        raise PolicyError(error.faults) from None


def judged(document: Document) -> Policy:
    """A document as a policy. Raises PolicyError."""
    try:
        policy = validate(document, Policy)
    except DocumentError as error:
        raise PolicyError(error.faults) from None
    faults = _shadowed(document, policy)
    if faults:
        raise PolicyError(faults)
    return policy


def _shadowed(document: Document, policy: Policy) -> list[Fault]:
    faults = []
    for number, rule in enumerate(policy.rules):
        over = next((r for r in policy.rules[:number] if includes(r.when, rule.when)), None)
        if over is not None:
            line = document.line(("rules", number))
            text = f"rule {rule.name!r} can never match: {over.name!r} before it takes all of it"
            faults.append(Fault(document.file, line, text, "move it up, or remove it"))
    return faults


def includes(wide: When, narrow: When) -> bool:
    """Whether everything that `narrow` matches is matched by `wide` too."""
    for name in When.model_fields:
        held, asked = getattr(wide, name), getattr(narrow, name)
        if held is None:
            continue
        if asked is None or not _spelled(asked) <= _spelled(held):
            return False
    return True


def _spelled(words: Sequence[Any]) -> set[str]:
    found = {str(word) for word in words}
    if UNSETTLED_WORD in found:
        found = (found - {UNSETTLED_WORD}) | {state.value for state in UNSETTLED}
    return found


def json_schema() -> str:
    """The JSON Schema of a policy, as it ships (`policies/policy.schema.json`)."""
    schema = Policy.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Quietus policy"
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"
