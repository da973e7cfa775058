"""etcd's key ranges: which keys, directories and owners a request asks for, at most.

Keys are read as paths: what stands before the last slash is the directory that a key lies in. A range that
is all that begins with `dir/` is that directory, and nothing else is one exactly. A transaction is the union
of what its parts ask for; one that decides for itself which parts to do is only an upper bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from quietus.profiles.filters import Fields, FilterReading, any_of, dimensions

DEPTH_MAX: Final = 8
OPS_MAX: Final = 1000
KEY, DIRECTORY, OWNER = "key", "directory", "owner"


class KeyRanges:
    """The dialect, with the pattern that finds whose a key is (None: nobody's)."""

    def __init__(self, pattern: re.Pattern[str] | None) -> None:
        self._pattern = pattern

    def __call__(self, found: Any, fields: Fields) -> FilterReading:
        """A request of the KV service, or the request that creates a watch."""
        if not isinstance(found, Mapping):
            return FilterReading()
        ranges = list(_ranges(found, 0))
        if len(ranges) > OPS_MAX or any(one is None for one in ranges):
            return FilterReading().unknown(dimensions(fields))
        if not ranges:
            return FilterReading()
        parts = [self._range(one, fields) for one in ranges if one is not None]
        out = parts[0] if len(parts) == 1 else any_of(parts)
        # Its parts may be done or not, and one after the other.
        out.narrowed |= len(ranges) > 1 or bool(found.get("compare")) or bool(found.get("failure"))
        return out

    def _range(self, one: Mapping[str, Any], fields: Fields) -> FilterReading:
        key, end = one.get("key", ""), one.get("range_end", "")
        if type(key) is not str:
            return FilterReading().unknown(dimensions(fields))
        bounds: dict[str, Any] = {}
        if end == "":
            if not key:
                return FilterReading(empty=True)
            if KEY in fields:
                bounds[fields[KEY]] = frozenset({key})
            self._within(key, key.rpartition("/")[0], bounds, fields)
            return FilterReading(bounds)
        start = _prefix(key, end)
        exact = start == key and start.endswith("/")
        directory = start.rpartition("/")[0]
        self._within(directory + "/" if directory else "", directory, bounds, fields)
        return FilterReading(bounds, narrowed=not exact)

    def _within(self, text: str, directory: str, bounds: dict[str, Any], fields: Fields) -> None:
        if DIRECTORY in fields and directory.strip("/"):
            bounds[fields[DIRECTORY]] = frozenset({directory})
        if OWNER in fields and self._pattern is not None:
            found = self._pattern.search(text)
            if found is not None and found["value"]:
                bounds[fields[OWNER]] = frozenset({found["value"]})


def _ranges(found: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any] | None]:
    """Every range within a request; None for what is nested too deeply to be one."""
    if depth > DEPTH_MAX:
        yield None
        return
    if "success" in found or "failure" in found or "compare" in found:
        for branch in ("success", "failure"):
            for part in found.get(branch, []):
                for inner in part.values():
                    yield from _ranges(inner, depth + 1)
        return
    inner = found.get("create_request")
    yield inner if isinstance(inner, Mapping) else found


def _prefix(key: str, end: Any) -> str:
    """What every key of a range begins with."""
    if type(end) is not str or end == "\0":
        return ""  # to the end of all keys, or to an end that is no text: whatever follows
    common = 0
    for one, other in zip(key, end, strict=False):
        if one != other:
            break
        common += 1
    if len(key) == common + 1 == len(end) and ord(end[common]) == ord(key[common]) + 1 < 0x80:
        return key  # `key` to `key` with its last byte raised by one: all that begins with `key`
    return key[:common]

