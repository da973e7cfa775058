"""Tokens: made for their owner alone, compared whole, refused where they could be guessed."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from quietus.admin.tokens import Role, TokenRefused, load_tokens
from quietus.config import load
from quietus.settings import Settings

FLAGS = {"store.profile": "mem0", "store.http.upstream": "http://h:1"}


def settings(folder: Path, **more: Any) -> Settings:
    flags = {"ledger.url": f"sqlite:///{folder}/ledger.db"} | {
        k.replace("__", "."): v for k, v in more.items()
    }
    return load(None, FLAGS | flags, {})


def test_a_token_is_made_beside_the_keys_for_its_owner_alone_and_kept(tmp_path: Path) -> None:
    _, made = load_tokens(settings(tmp_path))
    path = tmp_path / "admin.token"
    assert path.read_text(encoding="utf-8").strip() == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    tokens, again = load_tokens(settings(tmp_path))
    assert again == made
    identity = tokens.identify(f"Bearer {made}")
    assert identity is not None
    assert (identity.role, identity.actor) == (Role.OPERATOR, "operator")


def test_a_ledger_in_memory_leaves_no_token_behind(tmp_path: Path) -> None:
    tokens, made = load_tokens(load(None, FLAGS | {"ledger.url": "memory:"}, {}))
    assert tokens.identify(f"bearer {made}") is not None
    assert list(tmp_path.iterdir()) == []


def test_more_tokens_have_their_role_and_actor(tmp_path: Path) -> None:
    (tmp_path / "dpo").write_text("the-privacy-officers-token\n", encoding="utf-8")
    given = [{"file": str(tmp_path / "dpo"), "role": "privacy", "actor": "dpo@example"}]
    tokens, _ = load_tokens(settings(tmp_path, admin__tokens=given))
    identity = tokens.identify("Bearer the-privacy-officers-token")
    assert identity is not None
    assert (identity.role, identity.actor) == (Role.PRIVACY, "dpo@example")


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer x", "Basic x", "Bearer the-token-of-a-dp"]
)
def test_what_is_no_token_is_nobodys(tmp_path: Path, header: str | None) -> None:
    tokens, _ = load_tokens(settings(tmp_path))
    assert tokens.identify(header) is None


@pytest.mark.parametrize(
    "text", ["", "short", "two words of a token", "one-line-of-a-token\nanother-line-of-it"]
)
def test_a_token_that_could_be_guessed_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TokenRefused) as caught:
        load_tokens(settings(tmp_path, admin__token_file=path))
    assert not text or text not in str(caught.value)


def test_a_named_token_file_is_never_made(tmp_path: Path) -> None:
    with pytest.raises(TokenRefused):
        load_tokens(settings(tmp_path, admin__token_file=tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_two_actors_never_share_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("the-token-of-both-of-us\n", encoding="utf-8")
    given = [{"file": str(tmp_path / "token"), "role": "viewer", "actor": "other"}]
    with pytest.raises(TokenRefused):
        load_tokens(settings(tmp_path, admin__tokens=given, admin__token_file=tmp_path / "token"))
