"""Endpoints out of a protobuf descriptor set: one for each method of each service."""

from __future__ import annotations

from typing import Final

from google.protobuf import descriptor_pb2

from quietus.describing.nodes import Endpoint, Node
from quietus.profiles.descriptors import Descriptors, Field, MessageType

_NESTED_MAX: Final = 6
_KINDS: Final = {"string": "string", "bytes": "bytes", "bool": "boolean", "double": "number",
                 "float": "number", "enum": "enum", "message": "object"}  # fmt: skip


def endpoints(data: bytes) -> list[Endpoint]:
    """The methods of a descriptor set, in its order. Raises NoDescriptors."""
    descriptors = Descriptors(data)
    found = []
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        for service in file.service:
            full = f"{file.package}.{service.name}" if file.package else service.name
            for method in service.method:
                path = f"/{full}/{method.name}"
                rpc = descriptors.rpc(path)
                if rpc is not None:
                    found.append(Endpoint(
                        name=method.name, wire="grpc", method="POST", path=path, body=_node(rpc.takes, 0),
                        answer=_node(rpc.gives, 0), streams=rpc.server_streams,
                    ))  # fmt: skip
    return found


def _node(message: MessageType, depth: int) -> Node:
    if depth > _NESTED_MAX:
        return Node(frozenset({"object"}))
    members = {name: _field(one, depth) for name, one in message.names.items() if not one.is_map}
    return Node(frozenset({"object"}), members)


def _field(one: Field, depth: int) -> Node:
    if one.message is not None:
        node = _node(one.message, depth + 1)
    else:
        node = Node(frozenset({_KINDS.get(one.kind, "integer")}))
    return Node(frozenset({"array"}), of=node) if one.repeated else node
