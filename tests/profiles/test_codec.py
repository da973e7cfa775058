import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.profiles.codec import DEPTH_MAX, decode_exact, decode_json, encode_json, inflate
from quietus.profiles.faults import NotJson
from tests.harness.json_suite import accepts

REFUSED = [
    b"",
    b" ",
    b"nul",
    b"NaN",
    b"[NaN]",
    b"-Infinity",
    b"[1e999]",
    b"[-1e999]",
    b"\xef\xbb\xbf{}",
    b"{]",
    "{}".encode("utf-16"),
    "{}".encode("utf-16-le"),
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b'{"a":1,"a":2}',
    b'{"a":1,"a":1}',
    b'{"a" :1,"b":":","a":2}',
    b"[01]",
    b"[1,]",
    b'{"a":{"b":1,"b":2}}',
    b'[{"x":"\\":"},{"a":1,"a":2}]',
    b'{"a\\\\":1,"a\\\\":":"}',
    b"'a'",
    b"[1] 2",
    b'{"a":":","\\u0061":2}',
    b'{"subject":"alice","subject":"bob"}',
    b'"a\nb"',
    b"{1:2}",
    b"[1}",
    b"/**/1",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"[" + b"9" * 5000 + b"]",
    b"[" * 65 + b"]" * 65,
    b'{"n":18446744073709551616,"n":1}',
    b'{ "a" : 1 , "a" : 2 }',
    b'{"a":1,\n"b":"\\\\":2}',
]


@pytest.mark.requirement("R204")
@pytest.mark.parametrize("data", REFUSED, ids=range(len(REFUSED)))
def test_what_could_mean_two_things_is_refused(data: bytes) -> None:
    assert not accepts(data)


def test_a_refusal_never_quotes_the_document() -> None:
    with pytest.raises(NotJson) as caught:
        decode_json(b'{"subject":"alice-secret",')
    error: BaseException | None = caught.value
    assert error is not None and "alice" not in str(error)
    assert error.__cause__ is None and error.__suppress_context__


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"n":123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        (b'{ "n" : 18446744073709551616 }', {"n": 2**64}),
        (b"[-9223372036854775809]", [-(2**63) - 1]),
        (b"18446744073709551616", 2**64),
        (b'{"a":{},"b":[],"c":null}', {"a": {}, "b": [], "c": None}),
        (b'{"a":":","b":"\\":\\"","c":" :"}', {"a": ":", "b": '":"', "c": " :"}),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b"[" * DEPTH_MAX + b"]" * DEPTH_MAX, json.loads(b"[" * DEPTH_MAX + b"]" * DEPTH_MAX)),
    ],
)
def test_one_meaning_is_accepted_exactly(data: bytes, value: object) -> None:
    assert decode_json(data) == value
    assert repr(decode_json(data)) == repr(value)


def test_a_vector_with_an_integer_beyond_64_bits_keeps_it() -> None:
    data = json.dumps([0.5] * 20 + [2**70]).encode()
    assert decode_json(data)[-1] == 2**70


def test_too_many_elements_are_too_large() -> None:
    with pytest.raises(NotJson) as caught:
        decode_json(b"[" + b"1," * 1_000_001 + b"1]")
    assert caught.value.too_large


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 1]), st.sampled_from([(",", ":"), (", ", " : ")]))
def test_every_spelling_of_a_document_reads_the_same(
    document: object, ascii_only: bool, indent: int | None, separators: tuple[str, str]
) -> None:
    data = json.dumps(document, ensure_ascii=ascii_only, indent=indent, separators=separators).encode()
    assert decode_json(data) == json.loads(data)
    assert json.loads(encode_json(decode_exact(data))) == json.loads(data)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.text(max_size=3), st.text(max_size=5), min_size=1, max_size=5),
    st.data(),
    st.sampled_from([(",", ":"), (", ", ": "), (",", " :"), ("\n,", "\t:")]),
    st.booleans(),
)
def test_a_key_that_comes_twice_is_always_found(
    members: dict[str, str], data: st.DataObject, separators: tuple[str, str], nested: bool
) -> None:
    comma, colon = separators
    again = data.draw(st.sampled_from(sorted(members)))
    pairs = [*members.items(), (again, data.draw(st.text(max_size=5)))]
    spelled = [json.dumps(k, ensure_ascii=data.draw(st.booleans())) + colon + json.dumps(v) for k, v in pairs]
    text = "{" + comma.join(spelled) + "}"
    assert not accepts((f'{{"x":[{text}]}}' if nested else text).encode())


def test_editing_keeps_how_numbers_were_written() -> None:
    data = b'{"a":[1.10,1E5,-0,12345678901234567890.5,0.020000005],"b":"\xc3\xa9"}'
    assert (
        encode_json(decode_exact(data))
        == b'{"a":[1.10,1E5,0,12345678901234567890.5,0.020000005],"b":"\xc3\xa9"}'
    )


@pytest.mark.case(143, 145, 148)
def test_gzip_is_unpacked_within_a_bound_and_nothing_else_is() -> None:
    assert inflate(gzip.compress(b"{}"), "gzip", 100) == b"{}"
    assert inflate(b"{}", None, 100) == b"{}"
    bomb = gzip.compress(b"\0" * 10_000_000)
    for body, coding in (
        (bomb, "gzip"),
        (b"{}", "br"),
        (b"{}", "gzip, gzip"),
        (b"{}", "gzip"),
        (gzip.compress(b"{}")[:-3], "gzip"),
        (gzip.compress(b"{}") + b"x", "gzip"),
    ):
        with pytest.raises(NotJson):
            inflate(body, coding, 1000)
