"""Events: scopes written to the ledger and read back, and the bytes of an exchange."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietus.core.events import scope_from_facts, scope_to_facts
from quietus.core.exchange import Reply, Request, header, without
from quietus.core.scope import ANY, UNKNOWN, Scope

atoms = st.binary(min_size=1, max_size=4)
open_or = st.sampled_from([ANY, UNKNOWN])
sets = st.one_of(open_or, st.frozensets(atoms, min_size=1, max_size=3))
paths = st.one_of(open_or, st.frozensets(st.lists(atoms, min_size=1).map(tuple), min_size=1, max_size=3))


@given(st.builds(Scope, tenant=sets, subject=sets, purpose=sets, path=paths, key=sets))
def test_a_scope_comes_back_from_the_ledger_as_it_was(reach: Scope) -> None:
    assert scope_from_facts(scope_to_facts(reach)) == reach


def test_a_raw_identifier_is_never_written() -> None:
    with pytest.raises(TypeError, match="raw identifier"):
        scope_to_facts(Scope(subject=frozenset({"alice"})))


# Exchanges


def test_headers_are_found_whatever_their_case() -> None:
    headers = (("Content-Type", "a"), ("content-type", "b"), ("X-Other", "c"))
    assert header(headers, "CONTENT-TYPE") == "a"
    assert header(headers, "missing") is None
    assert without(headers, frozenset({"content-type"})) == (("X-Other", "c"),)


def test_target_is_split_at_its_first_question_mark() -> None:
    request = Request("GET", "/a%20b?q=1?2")
    assert (request.path, request.query) == ("/a%20b", "q=1?2")
    assert Request("GET", "/a").query == ""


def test_edited_body_sheds_the_headers_that_described_the_old_one() -> None:
    old = Reply(200, (("ETag", '"x"'), ("Content-Length", "99"), ("Content-Encoding", "gzip"), ("X", "y")))
    assert old.with_body(b"{}").headers == (("X", "y"), ("Content-Length", "2"))
