"""Where the ledger lies: a file for one process, or a server for several replicas."""

# ruff: noqa: E501 -- one setting a line, as in `settings`
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from quietus.profiles.words import Duration

SHARED: Final = frozenset({"redis", "rediss", "valkey", "valkeys", "postgresql", "postgres"})
"""Schemes of ledgers that several replicas may use."""


def _ledger(text: str) -> str:
    if text == "memory:" or (text.startswith("sqlite:") and sqlite_path(text).name):
        return text
    if (scheme := text.partition("://")[0]) in SHARED:
        parts = urlsplit(text)
        if parts.password:
            raise ValueError("holds a password; put it in a file and name that as `ledger.password_file`")
        if not parts.hostname and "host=" not in parts.query:
            raise ValueError(f"names no server; write it like {scheme}://HOST")
        return text
    raise ValueError(
        "is not a ledger; write sqlite:///PATH, redis://HOST, postgresql://HOST/DATABASE or memory:"
    )


def sqlite_path(url: str) -> Path:
    """The file of a `sqlite:` URL: three slashes or four before an absolute path.

    A bare name after three slashes (`sqlite:///quietus.db`) is a file in the working directory.
    """
    rest = url.removeprefix("sqlite:")
    slashes = len(rest) - len(rest.lstrip("/"))
    name = rest.lstrip("/")
    absolute = slashes in (1, 4) or (slashes == 3 and "/" in name)
    return Path("/" + name if absolute else name)


class LedgerSettings(BaseModel):
    """Where the ledger lies."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, AfterValidator(_ledger)] = Field(default="sqlite:///quietus.db", description="`sqlite:///PATH` (three slashes or four before an absolute path; a bare name is a file in the working directory), `redis://HOST` or `rediss://HOST` (Valkey or Redis), `postgresql://USER@HOST/DATABASE`, or `memory:`. `ledger: URL` is accepted too")
    name: str = Field(default="quietus", pattern=r"^[a-z][a-z0-9_-]{0,40}$", description="tells ledgers on one server apart: prefix of the keys, or schema of the database")
    password_file: Path | None = Field(default=None, description="file that holds the password of the ledger's server on one line")
    head_file: Path | None = Field(default=None, description="a file outside the ledger's failure domain that keeps its newest head; a ledger older than that is refused")
    reserve_bytes: int = Field(default=1 << 20, ge=0, description="set aside beside a SQLite ledger as `NAME.reserve`: on a full disk it is given up, so that a forget, a leak or a quarantine still shuts the gate; made anew when twice as much is free. 0: none")
    lease: Annotated[Duration, Field(ge=0.5, le=300)] = Field(default=10.0, description="how long calls are decided from memory while the ledger does not answer; then the gate shuts. A replica that is lost without a word holds up forgets for so long")

    @property
    def path(self) -> Path | None:
        """The file of a SQLite ledger; None for one in memory or on a server."""
        return sqlite_path(self.url) if self.url.startswith("sqlite:") else None

    @property
    def shared(self) -> bool:
        """Whether several replicas may use it."""
        return self.url.partition("://")[0] in SHARED
