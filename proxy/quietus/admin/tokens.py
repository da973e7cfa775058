"""Who may do what on the admin API: bearer tokens, each with an actor and a role."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from quietus.settings import Settings

SHORTEST = 16
"""Characters below which a token is refused: it could be guessed."""


class Role(IntEnum):
    """What a token may do; each role may do what the ones before it may."""

    VIEWER = 1
    PRIVACY = 2
    OPERATOR = 3


@dataclass(frozen=True, slots=True)
class Identity:
    """The actor of every act that its token asks for."""

    actor: str
    role: Role


class TokenRefused(Exception):
    """A token file that cannot be used; the message says what to do."""


class Tokens:
    """Known tokens. Only their digests are kept."""

    def __init__(self, known: Iterable[tuple[str, Identity]]) -> None:
        self._known = [(_digest(token), identity) for token, identity in known]

    def identify(self, authorization: str | None) -> Identity | None:
        """Whose the `Authorization` header is; None when it is nobody's."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        given, found = _digest(token.strip()), None
        for digest, identity in self._known:
            # Every token is compared, so that the time says nothing about which was close.
            if hmac.compare_digest(digest, given):
                found = identity
        return found


def load_tokens(settings: Settings) -> tuple[Tokens, str]:
    """The tokens of the settings, and the operator's token itself (for our own console).

    Makes the operator's token where none is named; where Kubernetes says who is who, none is made, and it is
    empty. Raises TokenRefused.
    """
    path = settings.token_path
    if settings.admin.reviews is not None and settings.admin.token_file is None:
        operator = ""
    elif path is None:
        operator = secrets.token_urlsafe(32)
    elif path.exists() or settings.admin.token_file is not None:
        operator = read_token(path)
    else:
        operator = _make(path)
    known = [(operator, Identity("operator", Role.OPERATOR))] if operator else []
    for extra in settings.admin.tokens:
        known.append((read_token(extra.file), Identity(extra.actor, Role[extra.role.upper()])))
    if len({token for token, _ in known}) < len(known):
        raise TokenRefused("two tokens of the admin API are the same: acts could not be told apart")
    return Tokens(known), operator


def read_token(path: Path) -> str:
    """The token in a file. Raises TokenRefused."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise TokenRefused(f"the token file {path} cannot be read; check the path and its mode") from None
    if len(token) < SHORTEST or len(token.split()) != 1:
        raise TokenRefused(f"the token file {path} must hold one token of at least {SHORTEST} characters")
    return token


def _make(path: Path) -> str:
    token = secrets.token_urlsafe(32)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise TokenRefused(f"the token file {path} cannot be made: {error.strerror}") from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(token + "\n")
    return token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
