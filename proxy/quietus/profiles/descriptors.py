"""Which fields a message has: the tables that the gRPC codec reads by, made from a descriptor set.

A descriptor set (`google.protobuf.FileDescriptorSet`) is what a protocol compiler writes of `.proto` files.
It is checked whole, in a pool of its own, so that no two profiles can disturb each other.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

SET_MAX: Final = 8 * 1024 * 1024
"""Bytes of the largest descriptor set that is read."""
VARINT, FIXED64, LEN, FIXED32 = 0, 1, 2, 5
"""Wire types, as the encoding numbers them; the deprecated groups are never known fields here."""
_KINDS: Final = {
    FieldDescriptor.TYPE_DOUBLE: ("double", FIXED64), FieldDescriptor.TYPE_FLOAT: ("float", FIXED32),
    FieldDescriptor.TYPE_INT64: ("int64", VARINT), FieldDescriptor.TYPE_UINT64: ("uint64", VARINT),
    FieldDescriptor.TYPE_INT32: ("int32", VARINT), FieldDescriptor.TYPE_FIXED64: ("fixed64", FIXED64),
    FieldDescriptor.TYPE_FIXED32: ("fixed32", FIXED32), FieldDescriptor.TYPE_BOOL: ("bool", VARINT),
    FieldDescriptor.TYPE_STRING: ("string", LEN), FieldDescriptor.TYPE_MESSAGE: ("message", LEN),
    FieldDescriptor.TYPE_BYTES: ("bytes", LEN), FieldDescriptor.TYPE_UINT32: ("uint32", VARINT),
    FieldDescriptor.TYPE_ENUM: ("enum", VARINT), FieldDescriptor.TYPE_SFIXED32: ("sfixed32", FIXED32),
    FieldDescriptor.TYPE_SFIXED64: ("sfixed64", FIXED64), FieldDescriptor.TYPE_SINT32: ("sint32", VARINT),
    FieldDescriptor.TYPE_SINT64: ("sint64", VARINT),
}  # fmt: skip


class NoDescriptors(ValueError):
    """A descriptor set that cannot be used; the message says why, and quotes nothing of it."""


@dataclass(slots=True, eq=False)
class Field:
    """One field of a message."""

    name: str
    number: int
    kind: str
    wire: int
    repeated: bool
    explicit: bool
    """Whether its absence differs from its default."""
    packed: bool
    oneof: str | None
    message: MessageType | None = None
    numbers: dict[int, str] = field(default_factory=dict)
    """Of an enum: its names by number."""
    names: dict[str, int] = field(default_factory=dict)
    text: bool = field(init=False)
    """Whether it is a single string of no choice."""

    def __post_init__(self) -> None:
        self.text = self.kind == "string" and not self.repeated and self.oneof is None

    @property
    def is_map(self) -> bool:
        """Whether it is a map, which the wire writes as repeated entries."""
        return self.message is not None and self.message.entry

    def absent(self) -> Any:
        """What a condition is held against where the field is not there: its default, null for a message."""
        if self.repeated:
            return None
        if self.kind == "enum":
            return self.numbers.get(0, 0)
        return {"string": "", "bytes": "", "bool": False, "float": 0.0, "double": 0.0, "message": None}.get(
            self.kind, 0
        )


@dataclass(slots=True, eq=False)
class MessageType:
    """One type of message: its fields by number and by name."""

    name: str
    entry: bool = False
    fields: dict[int, Field] = field(default_factory=dict)
    names: dict[str, Field] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"MessageType({self.name!r})"


@dataclass(frozen=True, slots=True)
class Rpc:
    """One method of a service: what goes in, what comes out, and how many of each."""

    path: str
    takes: MessageType
    gives: MessageType
    client_streams: bool = False
    server_streams: bool = False


class Descriptors:
    """The messages and methods of one descriptor set."""

    def __init__(self, data: bytes) -> None:
        if len(data) > SET_MAX:
            raise NoDescriptors(f"the descriptor set is larger than {SET_MAX} bytes")
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(data)
        except DecodeError:
            raise NoDescriptors("it is no FileDescriptorSet") from None
        if not files.file:
            raise NoDescriptors("the descriptor set holds no file")
        self.digest = hashlib.sha256(data).digest()
        self._pool = DescriptorPool()
        _add_all(self._pool, {one.name: one for one in files.file})
        self._types: dict[str, MessageType] = {}

    def rpc(self, path: str) -> Rpc | None:
        """The method with this path (`/package.Service/Method`), or None where the set lacks it."""
        service, _, name = path.removeprefix("/").partition("/")
        try:
            found = self._pool.FindServiceByName(service).methods_by_name.get(name)
        except KeyError:
            return None
        if found is None:
            return None
        return Rpc(
            path, self._type(found.input_type), self._type(found.output_type),
            found.client_streaming, found.server_streaming,
        )  # fmt: skip

    def message(self, name: str) -> MessageType | None:
        """The message of this full name, or None where the set lacks it."""
        try:
            return self._type(self._pool.FindMessageTypeByName(name))
        except KeyError:
            return None

    def _type(self, found: Descriptor) -> MessageType:
        known = self._types.get(found.full_name)
        if known is not None:
            return known
        made = MessageType(found.full_name, entry=bool(found.GetOptions().map_entry))
        self._types[found.full_name] = made  # before its fields: a message may hold itself
        for one in found.fields:
            if one.type in _KINDS:  # groups are left out, and so treated as what is not known
                field_made = self._field(one)
                made.fields[one.number] = made.names[one.name] = field_made
        return made

    def _field(self, one: FieldDescriptor) -> Field:
        kind, wire = _KINDS[one.type]
        oneof = one.containing_oneof
        synthetic = oneof is not None and len(oneof.fields) == 1 and oneof.name == f"_{one.name}"
        made = Field(
            name=one.name, number=one.number, kind=kind, wire=wire, repeated=bool(one.is_repeated),
            explicit=bool(one.has_presence), packed=bool(one.is_packed),
            oneof=None if oneof is None or synthetic else oneof.name,
        )  # fmt: skip
        if one.message_type is not None:
            made.message = self._type(one.message_type)
        if one.enum_type is not None:
            values = one.enum_type.values
            made.numbers = {value.number: value.name for value in reversed(values)}
            made.names = {value.name: value.number for value in values}
        return made


def of_module(name: str) -> bytes:
    """The descriptor set of an installed `_pb2` module, with what it depends on. Raises NoDescriptors."""
    try:
        module: ModuleType = importlib.import_module(name)
    except ImportError:
        raise NoDescriptors(f"no module {name} is installed") from None
    found = getattr(module, "DESCRIPTOR", None)
    if not isinstance(found, FileDescriptor):
        raise NoDescriptors(f"{name} is no module made from a .proto file")
    out = descriptor_pb2.FileDescriptorSet()
    for one in _with_dependencies(found, set()):
        out.file.append(descriptor_pb2.FileDescriptorProto.FromString(one.serialized_pb))
    return out.SerializeToString()


def _with_dependencies(found: FileDescriptor, seen: set[str]) -> Iterator[FileDescriptor]:
    if found.name in seen:
        return
    seen.add(found.name)
    for one in found.dependencies:
        yield from _with_dependencies(one, seen)
    yield found


def _add_all(pool: DescriptorPool, files: dict[str, descriptor_pb2.FileDescriptorProto]) -> None:
    """Adds files, each after what it depends on; the well-known ones are at hand. Raises NoDescriptors."""
    done: set[str] = set()

    def add(name: str, below: tuple[str, ...]) -> None:
        if name in done:
            return
        if name in below:
            raise NoDescriptors(f"the file {name} depends on itself")
        one = files.get(name) or _well_known(name)
        if one is None:
            raise NoDescriptors(f"the descriptor set lacks {name}, which {below[-1]} depends on")
        for dependency in one.dependency:
            add(dependency, (*below, name))
        try:
            pool.AddSerializedFile(one.SerializeToString())
        except (TypeError, ValueError):
            raise NoDescriptors(f"the file {name} of the descriptor set does not hold together") from None
        done.add(name)

    for name in files:
        add(name, ())


def _well_known(name: str) -> descriptor_pb2.FileDescriptorProto | None:
    if not name.startswith("google/protobuf/") or name.count("/") != 2:
        return None
    stem = name.rpartition("/")[2].removesuffix(".proto")
    if not stem.isidentifier():
        return None
    try:
        module = importlib.import_module(f"google.protobuf.{stem}_pb2")
    except ImportError:
        return None
    return descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
