"""The bytes of one exchange with a store, as they stand on the wire.

A `Request` is what the client sent; it is forwarded as it came. A `Reply` is what the store
answered, read whole up to a limit. Header names keep the case they came in; look them up with
`header()`, which ignores case.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

Headers = tuple[tuple[str, str], ...]


def header(headers: Headers, name: str) -> str | None:
    """The first value of the header `name` (case ignored), or None."""
    wanted = name.lower()
    for key, value in headers:
        if key.lower() == wanted:
            return value
    return None


def without(headers: Headers, names: frozenset[str]) -> Headers:
    """The headers less those named in `names` (lower case)."""
    return tuple(pair for pair in headers if pair[0].lower() not in names)


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `target` is the raw request target (path and query) as it came."""

    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""

    @property
    def path(self) -> str:
        """The raw path, still percent-encoded, without the query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The raw query string without its question mark."""
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the store, whole."""

    status: int
    headers: Headers = ()
    body: bytes = b""
    reason: str = field(default="", compare=False)

    def with_body(self, body: bytes) -> Reply:
        """The same answer with another body: its length is restated, its digests are dropped."""
        kept = without(self.headers, _BODY_BOUND)
        return replace(self, headers=(*kept, ("Content-Length", str(len(body)))), body=body)


# Headers that describe the exact bytes of a body; they must not outlive an edit of it.
_BODY_BOUND = frozenset(
    {"content-length", "content-encoding", "transfer-encoding", "etag", "content-md5", "digest",
     "content-digest", "repr-digest", "accept-ranges", "content-range"}
)
