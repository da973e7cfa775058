"""Settings of the reviews by which Kubernetes says who may use the admin API."""

# ruff: noqa: E501 -- one setting a line, as in `settings`
from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from quietus.profiles.words import Duration

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def _server(text: str) -> str:
    if not re.fullmatch(r"https://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?", text):
        raise ValueError("is not the address of an API server; write it like https://kubernetes.default.svc:443")
    return text


class ReviewSettings(BaseModel):
    """TokenReview and SubjectAccessReview."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    server: Annotated[str, AfterValidator(_server)] | None = Field(default=None, description="the API server, `https://HOST:PORT`; the one that a pod is told of when not given")
    account: Path = Field(default=ACCOUNT, description="folder of the service account that asks: `token`, `ca.crt`, `namespace`; read anew when they change")
    audiences: tuple[Annotated[str, Field(min_length=1)], ...] = Field(default=("quietus",), min_length=1, description="audiences that a token must be meant for, one of them: `kubectl create token NAME --audience quietus`")
    namespace: str | None = Field(default=None, description="namespace of the resource that is asked about; the account's own when not given")
    cache: Annotated[Duration, Field(ge=0, le=60)] = Field(default=10.0, description="how long an answer holds: so long a token that was revoked is still taken. At most a minute")
    timeout: Annotated[Duration, Field(gt=0, le=30)] = Field(default=5.0, description="for one answer of the API server; without one nobody is let in")

    def resource_namespace(self) -> str:
        """The namespace that is asked about. Raises OSError where neither the setting nor the account names one."""
        if self.namespace is not None:
            return self.namespace
        return (self.account / "namespace").read_text(encoding="utf-8").strip()
