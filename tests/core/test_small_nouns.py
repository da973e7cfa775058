"""Terms, exchanges, soundness and operations: each rule of them as a row of a table."""

from __future__ import annotations

import pytest

from quietus.core.exchange import GRPC_STATUS, Reply, Request, header, without
from quietus.core.operations import UNMAPPED, Call, Operation
from quietus.core.soundness import Manners, Rating, audited, must_wait, rated, synchronous
from quietus.core.terms import Terms

# Terms


@pytest.mark.parametrize(
    ("terms", "spacing"),
    [
        (Terms(900.0, 1800.0, 3), 10.0),
        (Terms(90.0, 1800.0, 3), 3.0),
        (Terms(1.0, 1800.0, 3), 0.25),
        (Terms(900.0, 908.0, 3), 2.0),
        (Terms(900.0, 908.0, 1), 4.0),
        (Terms(900.0, 900.0, 3), 0.05),
    ],
)
def test_counted_rounds_have_room_before_the_bound(terms: Terms, spacing: float) -> None:
    assert terms.spacing == pytest.approx(spacing)


def test_stricter_terms_are_the_stricter_of_each() -> None:
    lax = Terms(10.0, 20.0, 1, 100.0, 60.0, claims_completion=False)
    hard = Terms(11.0, 21.0, 2, 101.0, 59.0, claims_completion=True)
    assert lax.stricter(hard) == hard.stricter(lax) == hard
    assert lax.stricter(lax) == lax
    mixed = Terms(11.0, 20.0, 2, 100.0, 59.0, claims_completion=False)
    assert mixed.stricter(Terms(10.0, 21.0, 1, 101.0, 60.0)) == hard


def test_terms_that_nobody_gave() -> None:
    assert Terms() == Terms(900.0, 1800.0, 3, 7_776_000.0, 3600.0, claims_completion=True)


# Exchanges

HEADERS = (("Content-Type", "a"), ("X-Two", "1"), ("x-two", "2"))


@pytest.mark.parametrize(
    ("name", "value"), [("content-type", "a"), ("X-TWO", "1"), ("x-two", "1"), ("absent", None)]
)
def test_header_is_looked_up_whatever_its_case(name: str, value: str | None) -> None:
    assert header(HEADERS, name) == value


def test_headers_are_left_out_by_their_small_names() -> None:
    assert without(HEADERS, frozenset({"x-two"})) == HEADERS[:1]
    assert without(HEADERS, frozenset()) == HEADERS


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [("/a%20b", "/a%20b", ""), ("/a?b=c?d", "/a", "b=c?d"), ("/a?", "/a", ""), ("", "", "")],
)
def test_target_is_split_at_its_first_question_mark(target: str, path: str, query: str) -> None:
    request = Request("GET", target)
    assert (request.path, request.query, request.wire, request.body) == (path, query, "http", b"")


def test_another_body_has_its_own_length_and_none_of_the_old_digests() -> None:
    bound = ("content-length", "Content-Encoding", "transfer-encoding", "ETag", "content-md5", "Digest",
             "content-digest", "repr-digest", "Accept-Ranges", "content-range")  # fmt: skip
    reply = Reply(200, (("X", "y"), *((name, "old") for name in bound)), b"old", "OK")
    changed = reply.with_body(b"four")
    assert changed.headers == (("X", "y"), ("Content-Length", "4"))
    assert (changed.body, changed.status, changed.wire) == (b"four", 200, "http")
    message = Reply(200, HEADERS, b"old", code="OK")
    assert (message.with_body(b"new").headers, message.wire) == (HEADERS, "grpc")
    assert message.with_body(b"new").body == b"new"
    assert Reply(200, reason="OK") == Reply(200, reason="Fine")


def test_grpc_codes_say_what_http_says() -> None:
    assert {code for code, status in GRPC_STATUS.items() if status < 400} == {"OK"}
    by_status: dict[int, set[str]] = {}
    for code, status in GRPC_STATUS.items():
        by_status.setdefault(status, set()).add(code)
    assert by_status == {
        200: {"OK"}, 499: {"CANCELLED"}, 500: {"UNKNOWN", "INTERNAL", "DATA_LOSS"},
        504: {"DEADLINE_EXCEEDED"},
        400: {"INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"}, 404: {"NOT_FOUND"},
        409: {"ALREADY_EXISTS", "ABORTED"}, 403: {"PERMISSION_DENIED"}, 429: {"RESOURCE_EXHAUSTED"},
        501: {"UNIMPLEMENTED"}, 503: {"UNAVAILABLE"}, 401: {"UNAUTHENTICATED"},
    }  # fmt: skip


# Operations


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("route", [UNMAPPED, "search"])
def test_memories_may_come_back_from_reads_recalls_and_what_nobody_described(
    operation: Operation, route: str
) -> None:
    recalls = operation in (Operation.READ, Operation.RECALL) or route == "unmapped"
    assert Call(operation, route).recalls is recalls
    assert Call(operation).route == UNMAPPED


# Soundness


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("window", [0.0, 0.5, 900.0])
@pytest.mark.parametrize("reads", [False, None, True])
def test_store_is_at_risk_when_all_three_hold(lazy: bool, window: float, reads: bool | None) -> None:
    rating = rated(Manners(lazy, reads, window))
    if not lazy or window == 0 or reads is False:
        assert rating is Rating.SOUND
    else:
        assert rating is (Rating.UNSOUND if reads else Rating.UNKNOWN)


@pytest.mark.parametrize(
    ("lazy", "reads", "window", "features", "attested", "expected"),
    [
        (True, True, 9.0, "", "", False),
        (True, True, 9.0, "", "no_derived_reads", False),
        (True, True, 9.0, "", "write_path_audited", True),
        (False, True, 9.0, "", "", True),
        (True, True, 0.0, "", "", True),
        (True, None, 9.0, "", "", True),
        (True, False, 9.0, "salience", "", False),
        (True, False, 9.0, "dedup", "", False),
        (True, False, 9.0, "dedup", "no_derived_reads", True),
        (True, False, 9.0, "dedup", "write_path_audited", True),
        (True, False, 9.0, "other", "", True),
    ],
)
def test_who_ranks_or_merges_needs_somebody_who_has_looked(
    lazy: bool, reads: bool | None, window: float, features: str, attested: str, expected: bool
) -> None:
    manners = Manners(lazy, reads, window, frozenset({features}), frozenset({attested}))
    assert audited(manners) is expected


@pytest.mark.parametrize(
    ("reads", "features", "promises"),
    [
        (None, set(), False),
        (True, set(), False),
        (None, {"salience"}, True),
        (True, {"dedup"}, True),
        (False, {"dedup"}, False),
        (False, {"hard_erasure"}, True),
    ],
)
@pytest.mark.parametrize("signals", [False, True])
def test_store_that_promises_is_waited_for_where_it_says_when_it_is_done(
    reads: bool | None, features: set[str], promises: bool, signals: bool
) -> None:
    told = features | ({"completion_signal"} if signals else set())
    manners = Manners(True, reads, 9.0, frozenset(told))
    assert synchronous(manners) is (promises and signals)
    assert must_wait(manners) is (promises and not signals)
