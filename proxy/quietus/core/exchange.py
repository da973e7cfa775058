"""The bytes of one exchange with a store, as they stand on the wire.

A `Request` is what the client sent; it is forwarded as it came. A `Reply` is what the store
answered, read whole up to a limit. Header names keep the case they came in; look them up with
`header()`, which ignores case.

On the gRPC wire a `Request` has the method POST, the method's full name (`/package.Service/Method`) as its
target, the metadata as its headers and one serialized message, without the five bytes of framing, as its
body. A `Reply` carries the code in `code`, beside the HTTP status that says the same (`GRPC_STATUS`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Literal

Wire = Literal["http", "grpc"]
Headers = tuple[tuple[str, str], ...]


def header(headers: Headers, name: str) -> str | None:
    """The first value of the header `name` (case ignored), or None."""
    wanted = name.lower()
    for key, value in headers:
        if key == name or key.lower() == wanted:
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
    wire: Wire = "http"

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
    code: str | None = None
    """Of gRPC: the name of its status code, such as NOT_FOUND. None on HTTP."""
    trailers: Headers = ()
    """Of gRPC: the trailing metadata, less what says the status itself."""

    @property
    def wire(self) -> Wire:
        """The wire that it came on."""
        return "http" if self.code is None else "grpc"

    def with_body(self, body: bytes) -> Reply:
        """The same answer with another body: its length is restated, its digests are dropped."""
        if self.code is not None:
            return replace(self, body=body)
        kept = without(self.headers, _BODY_BOUND)
        return replace(self, headers=(*kept, ("Content-Length", str(len(body)))), body=body)


# Headers that describe the exact bytes of a body; they must not outlive an edit of it.
_BODY_BOUND = frozenset(
    {"content-length", "content-encoding", "transfer-encoding", "etag", "content-md5", "digest",
     "content-digest", "repr-digest", "accept-ranges", "content-range"}
)

GRPC_STATUS: Final = {
    "OK": 200, "CANCELLED": 499, "UNKNOWN": 500, "INVALID_ARGUMENT": 400, "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404, "ALREADY_EXISTS": 409, "PERMISSION_DENIED": 403, "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400, "ABORTED": 409, "OUT_OF_RANGE": 400, "UNIMPLEMENTED": 501, "INTERNAL": 500,
    "UNAVAILABLE": 503, "DATA_LOSS": 500, "UNAUTHENTICATED": 401,
}  # fmt: skip
"""The HTTP status that says what a gRPC code says, as google.rpc.Code has it."""
