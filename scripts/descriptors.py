"""Makes the descriptor sets that ship beside the profiles: of a store's protocol, only what a profile reads.

`python scripts/descriptors.py` writes them anew from the installed modules that their protocols are published
in (`pip install aetcd pymilvus`); a test holds the shipped ones to them where those are installed. Where each
protocol comes from, and under which licence, stands in policies/profiles/DESCRIPTORS.md.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FileDescriptor

PLACE = Path(__file__).resolve().parent.parent / "policies" / "profiles"
WANTED: dict[str, tuple[str, dict[str, tuple[str, ...]], tuple[str, ...]]] = {
    "etcd.pb": (
        "aetcd.rpc.rpc_pb2",
        {"KV": ("Range", "Put", "DeleteRange", "Txn", "Compact"), "Watch": ("Watch",),
         "Lease": ("LeaseTimeToLive",)},
        (),
    ),
    "milvus.pb": (
        "pymilvus.grpc_gen.milvus_pb2",
        {"MilvusService": ("Insert", "Upsert", "Delete", "Search", "HybridSearch", "Query")},
        ("milvus.proto.common.PlaceholderGroup",),
    ),
}  # fmt: skip
"""File: the module of its protocol, the methods by service, and messages that stand in bytes fields."""


def pruned(module: str, services: dict[str, tuple[str, ...]], messages: Iterable[str]) -> bytes:
    """The descriptor set with these methods and messages, and what those hold; nothing else."""
    file: FileDescriptor = importlib.import_module(module).DESCRIPTOR
    needed: dict[str, Descriptor | EnumDescriptor] = {}
    for name, methods in services.items():
        for method in methods:
            found = file.services_by_name[name].methods_by_name[method]
            _need(found.input_type, needed)
            _need(found.output_type, needed)
    files = list(_files(file, set()))
    for full in messages:
        kinds = (kind for one in files for kind in one.message_types_by_name.values())
        _need(next(kind for kind in kinds if kind.full_name == full), needed)
    out = descriptor_pb2.FileDescriptorSet()
    kept: set[str] = set()
    for one in files:
        made = _file(one, services if one is file else {}, needed, kept)
        if made is not None:
            kept.add(one.name)
            out.file.append(made)
    return out.SerializeToString(deterministic=True)


def _need(found: Descriptor | EnumDescriptor, needed: dict[str, Descriptor | EnumDescriptor]) -> None:
    if found.full_name in needed:
        return
    needed[found.full_name] = found
    if found.containing_type is not None:
        _need(found.containing_type, needed)
    if isinstance(found, Descriptor):
        for field in found.fields:
            for kind in (field.message_type, field.enum_type):
                if kind is not None:
                    _need(kind, needed)


def _files(file: FileDescriptor, seen: set[str]) -> Iterator[FileDescriptor]:
    if file.name not in seen:
        seen.add(file.name)
        for one in file.dependencies:
            yield from _files(one, seen)
        yield file


def _file(
    file: FileDescriptor, services: dict[str, tuple[str, ...]], needed: dict[str, Any], kept: set[str]
) -> descriptor_pb2.FileDescriptorProto | None:
    whole = descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb)
    made = descriptor_pb2.FileDescriptorProto(name=whole.name, package=whole.package, syntax=whole.syntax)
    prefix = f"{whole.package}." if whole.package else ""
    made.message_type.extend(_message(one, f"{prefix}{one.name}", needed) for one in whole.message_type
                             if f"{prefix}{one.name}" in needed)  # fmt: skip
    made.enum_type.extend(_enum(one) for one in whole.enum_type if f"{prefix}{one.name}" in needed)
    for service in whole.service:
        if service.name in services:
            methods = [one for one in service.method if one.name in services[service.name]]
            for one in methods:
                one.ClearField("options")
            made.service.add(name=service.name, method=methods)
    if not (made.message_type or made.enum_type or made.service):
        return None
    made.dependency.extend(name for name in whole.dependency if name in kept)
    return made


def _message(whole: Any, name: str, needed: dict[str, Any]) -> descriptor_pb2.DescriptorProto:
    made = descriptor_pb2.DescriptorProto(name=whole.name, oneof_decl=whole.oneof_decl)
    if whole.options.map_entry:
        made.options.map_entry = True
    for one in whole.field:
        field = made.field.add()
        field.CopyFrom(one)
        field.ClearField("json_name")
        packed = one.options.packed if one.options.HasField("packed") else None
        field.ClearField("options")
        if packed is not None:
            field.options.packed = packed
    made.nested_type.extend(_message(one, f"{name}.{one.name}", needed) for one in whole.nested_type
                            if f"{name}.{one.name}" in needed)  # fmt: skip
    made.enum_type.extend(_enum(one) for one in whole.enum_type if f"{name}.{one.name}" in needed)
    return made


def _enum(whole: Any) -> descriptor_pb2.EnumDescriptorProto:
    made = descriptor_pb2.EnumDescriptorProto(name=whole.name)
    for one in whole.value:
        made.value.add(name=one.name, number=one.number)
    if whole.options.allow_alias:
        made.options.allow_alias = True
    return made


def main() -> int:
    """Writes every set; 1 where a module is not installed."""
    for name, (module, services, messages) in WANTED.items():
        try:
            data = pruned(module, services, messages)
        except ImportError as error:
            sys.stderr.write(f"{name}: {error}\n")
            return 1
        (PLACE / name).write_bytes(data)
        sys.stdout.write(f"{name}: {len(data)} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
